import { budgetsModel } from './budgets/budgets-model';
import { eventIndexModel } from './event-index/event-index-model';
import type { ReadModel } from './read-model';
import { settingsModel } from './settings/settings-model';
import { spendModel } from './spend/spend-model';

/** Every read model of the service. */
export const READ_MODELS: readonly ReadModel[] = [spendModel, budgetsModel, settingsModel, eventIndexModel];
