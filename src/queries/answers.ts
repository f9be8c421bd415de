// What the edge needs to know of read models, through queries: `http` never reaches into them itself.
export type { BudgetView } from '../read-models/budgets/budget-queries';
export { InvalidCursorError } from '../read-models/paging';
export { SPEND_DIMENSIONS } from '../read-models/spend/spend-queries';
export type { SpendDimension } from '../read-models/spend/spend-queries';
