import { DatabaseClock } from '../../src/postgres/clock';

/** A world in which the store, the process and the wall each have a clock of their own. */
class World {
  store = 1_000_000;
  mono = 50;
  wall = 9_000_000;
  roundTripMs = 0;
  questions = 0;
  fails = false;

  readonly clock = new DatabaseClock({
    monotonic: () => this.mono,
    wallTime: () => this.wall,
    readStoreTime: () => {
      this.questions += 1;
      if (this.fails) return Promise.reject(new Error('no answer'));
      const told = this.store;
      this.pass(this.roundTripMs);
      return Promise.resolve(told);
    },
  });

  pass(ms: number): void {
    this.store += ms;
    this.mono += ms;
    this.wall += ms;
  }
}

let world: World;
beforeEach(async () => {
  world = new World();
  await world.clock.refresh();
});

describe("the ledger's clock", () => {
  it('is the time of PostgreSQL plus the time elapsed since', () => {
    expect(world.clock.now()).toBe(1_000_000);
    world.pass(250.7);
    expect(world.clock.now()).toBe(1_000_250);
  });

  it('does not follow the wall clock of the process', () => {
    world.wall += 86_400_000;
    world.mono += 10;
    expect(world.clock.now()).toBe(1_000_010);
  });

  it('never goes back, even when PostgreSQL does', () => {
    world.pass(500);
    expect(world.clock.now()).toBe(1_000_500);
    world.clock.observe(1_000_100, world.mono);
    expect(world.clock.now()).toBe(1_000_500);
    world.pass(399);
    expect(world.clock.now()).toBe(1_000_500);
    world.pass(2);
    expect(world.clock.now()).toBe(1_000_501);
  });

  it('follows PostgreSQL forwards with each append', () => {
    world.pass(10);
    world.clock.observe(1_003_000, world.mono - 4);
    expect(world.clock.now()).toBe(1_003_000);
  });

  it('drops an observation older than its last', () => {
    const [sent, received] = [world.mono, world.mono + 1];
    world.pass(100);
    world.clock.observe(1_000_100, world.mono, world.mono);
    world.clock.observe(1_900_000, sent, received);
    expect(world.clock.now()).toBe(1_000_100);
  });

  it('is not fresh after a pause of the process, until it is read again', async () => {
    world.pass(5_000);
    expect(world.clock.isFresh()).toBe(true);
    world.pass(1);
    expect(world.clock.isFresh()).toBe(false);
    await world.clock.refresh();
    expect(world.clock.isFresh()).toBe(true);
    expect(world.clock.now()).toBe(1_005_001);
  });

  it('is not fresh after the machine slept, which stops the monotonic clock too', () => {
    world.wall += 3_600_000;
    world.store += 3_600_000;
    expect(world.clock.isFresh()).toBe(false);
  });

  it('drops an answer that waited in its socket while the process was paused', () => {
    const sent = world.mono;
    const told = world.store;
    world.pass(3_600_000);
    world.clock.observe(told, sent);
    expect(world.clock.now()).toBe(1_000_000 + 3_600_000);
    expect(world.clock.isFresh()).toBe(false);
  });

  it('says so when PostgreSQL takes too long to tell the time', async () => {
    world.roundTripMs = 1_001;
    await expect(world.clock.refresh()).rejects.toThrow('longer than 1000 ms');
    expect(world.questions).toBe(1 + 3);
  });

  it('asks once for all who ask at the same time', async () => {
    await Promise.all([world.clock.refresh(), world.clock.refresh(), world.clock.refresh()]);
    expect(world.questions).toBe(2);
  });

  it('fails a refresh that gets no answer, and is not fresher for it', async () => {
    world.pass(6_000);
    world.fails = true;
    await expect(world.clock.refresh()).rejects.toThrow('no answer');
    expect(world.clock.isFresh()).toBe(false);
  });

  it('tells no time before it was read', () => {
    expect(() => new World().clock.now()).toThrow('not read yet');
  });
});
