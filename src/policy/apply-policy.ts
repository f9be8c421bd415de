import { readFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { parse } from 'yaml';
import { z } from 'zod';
import type { Command } from '../domain/commands';
import { faultsOf } from '../schemas/faults';
import { budget, definitionOf, price, settings } from '../schemas/policy';
import { label, provider, slug } from '../schemas/primitives';
import type { CommandGateway } from '../writer/submission';

const policy = z.strictObject({
  ledgers: z.record(
    slug,
    z.strictObject({
      settings: settings.optional(),
      budgets: z.array(budget.safeExtend({ id: slug })).optional(),
      prices: z.array(price.safeExtend({ provider, model: label })).optional(),
    }),
  ),
});
export type Policy = z.output<typeof policy>;

/** A policy file that cannot be used, with everything that is wrong with it. */
export class PolicyError extends Error {
  override readonly name = 'PolicyError';
}

/** Reads a policy. Throws PolicyError naming every fault. */
export function readPolicy(file: string): Policy {
  let written: unknown;
  try {
    written = parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new PolicyError(
      `the policy file cannot be read: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
  const read = policy.safeParse(written);
  if (read.success) return read.data;
  const faults = faultsOf(read.error).map(({ path, message }) => `  ${path}: ${message}`);
  throw new PolicyError(`the policy file is wrong:\n${faults.join('\n')}`);
}

/**
 * Applies a policy as commands: what stands already is not recorded again, what is not named is left as it is. Throws
 * PolicyError where one is rejected.
 */
export async function applyPolicy({ ledgers }: Policy, gateway: CommandGateway): Promise<void> {
  for (const [ledger, wanted] of Object.entries(ledgers)) {
    for (const [what, command] of commandsOf(wanted)) {
      await mustAccept(gateway, { actor: 'policy', ledger, command, what });
    }
  }
}

function commandsOf(wanted: Policy['ledgers'][string]): [string, Command][] {
  const commands: [string, Command][] = [
    ['settings', { type: 'OpenLedger', settings: wanted.settings ?? {} }],
  ];
  for (const { provider: by, model, rates, serviceTiers, embedding } of wanted.prices ?? []) {
    commands.push([
      `price ${by}/${model}`,
      { type: 'SetPrice', provider: by, model, rates, serviceTiers, embedding, origin: 'policy' },
    ]);
  }
  for (const body of wanted.budgets ?? []) {
    commands.push([
      `budget ${body.id}`,
      { type: 'DefineBudget', budget: definitionOf(body.id, body), countFrom: body.countFrom },
    ]);
  }
  return commands;
}

/** A command of the service's own at start. Throws PolicyError with everything that is wrong where it is rejected. */
export async function mustAccept(
  gateway: CommandGateway,
  {
    actor,
    ledger,
    command,
    what = command.type,
  }: { actor: string; ledger: string; command: Command; what?: string },
): Promise<void> {
  const id = randomUUID();
  const outcome = await gateway.submit(ledger, command, { actor, correlationId: id, causationId: id });
  if (outcome.kind === 'answered') return;
  const { rejection } = outcome;
  const faults =
    rejection.code === 'invalid' ? rejection.faults.map(({ path, message }) => `${path} ${message}`) : [];
  throw new PolicyError(`${ledger}, ${what}: ${[rejection.detail, ...faults].join('; ')}`);
}
