import { RunningService, check, createTestDatabase } from './service';

describe('more than one process, and the end of one', () => {
  it('casebook 3: two processes on one database, 1,000 checks at once, not one nano-dollar over', async () => {
    const database = await createTestDatabase();
    const services = await Promise.all([RunningService.start(database), RunningService.start(database)]);
    const [one, two] = services;
    // Room for exactly 300 of 0.02148.
    await one.put('budgets/room', { match: {}, window: 'day', limit: '6.444' });
    const replies = await Promise.all(
      Array.from({ length: 1_000 }, (_, i) => (i % 2 ? one : two).post('check-budget', check(`r${i}`))),
    );
    const statuses = replies.map(({ status }) => status);
    const passed = replies.filter(({ status }) => status === 200);
    expect(statuses.filter((status) => ![200, 402, 503].includes(status))).toEqual([]);
    // What was told 503 is asked again with the same identity, as a client does.
    let allowed = passed.length;
    for (const [i, status] of statuses.entries()) {
      if (status !== 503) continue;
      const again = await one.post('check-budget', check(`r${i}`));
      if (again.status === 200) allowed += 1;
    }
    expect(allowed).toBe(300);
    const head = Math.max(...passed.map(({ body }) => body.position as number));
    const { body } = await two.get(`budgets?after=${head}`);
    expect(body.data[0].current).toMatchObject({ held: '6.444', remaining: '0' });
    expect((await two.get('verify')).body).toMatchObject({ ok: true });
    await Promise.all(services.map((service) => service.stop()));
    await database.drop();
  });

  it('kill -9 under load: what was acknowledged is there, and the chain is whole', async () => {
    const database = await createTestDatabase();
    const first = await RunningService.start(database);
    const acknowledged: string[] = [];
    let sent = 0;
    const load = Array.from({ length: 16 }, async () => {
      for (;;) {
        const id = `k${(sent += 1)}`;
        const reply = await first.post('check-budget', check(id)).catch(() => undefined);
        if (reply?.status !== 200) return;
        acknowledged.push(id);
        if (acknowledged.length === 300) first.process.kill('SIGKILL');
      }
    });
    await Promise.all(load);
    await first.stop('SIGKILL');
    const second = await RunningService.start(database);
    expect(acknowledged.length).toBeGreaterThanOrEqual(300);
    for (const id of acknowledged) {
      const again = await second.post('check-budget', check(id));
      expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([200, 'true']);
    }
    expect((await second.get('verify')).body).toMatchObject({ ok: true });
    await second.stop();
    await database.drop();
  });

  it('SIGTERM under load: everything accepted is answered, and it ends with 0', async () => {
    const database = await createTestDatabase();
    const service = await RunningService.start(database);
    const asked = Array.from({ length: 200 }, (_, i) =>
      service.post('check-budget', check(`r${i}`)).catch(() => undefined),
    );
    await asked[0];
    const code = await service.stop();
    const answered = (await Promise.all(asked)).filter((reply) => reply?.status === 200);
    expect(code).toBe(0);
    expect(answered.length).toBeGreaterThan(0);
    const after = await RunningService.start(database);
    const state = await after.get('state');
    expect(state.body.reservations.length).toBe(answered.length);
    await after.stop();
    await database.drop();
  });
});
