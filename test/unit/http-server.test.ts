import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { Controller, Get, Module } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { createServer } from '../../src/http/server';

/** A request that is answered when the test says so. */
let arrived = (): void => undefined;
let answer = (): void => undefined;
const begun = new Promise<void>((tell) => (arrived = tell));
const allowed = new Promise<void>((tell) => (answer = tell));

@Controller()
class SlowController {
  @Get('slow')
  async slow() {
    arrived();
    await allowed;
    return { slow: true };
  }
}

@Module({})
class SlowModule {}

const REQUEST = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;

const refused = (port: number): Promise<boolean> =>
  new Promise((tell) => {
    const attempt = connect(port, '127.0.0.1');
    attempt.once('connect', () => {
      attempt.destroy();
      tell(false);
    });
    attempt.once('error', () => {
      tell(true);
    });
  });

describe('a server that ends', () => {
  let app: NestFastifyApplication;
  let socket: Socket;

  beforeAll(async () => {
    app = await createServer({
      module: { module: SlowModule, controllers: [SlowController] },
      authenticate: () => 'tester',
      report: (error) => {
        throw error;
      },
    });
    await app.listen(0, '127.0.0.1');
  });
  afterAll(() => socket.destroy());

  it('answers what it accepted, and tells what comes after on an open connection to come again', async () => {
    const { port } = app.getHttpServer().address() as { port: number };
    socket = connect(port, '127.0.0.1');
    let heard = '';
    socket.on('data', (part) => (heard += part.toString('utf8')));
    const closed = new Promise((tell) => socket.once('close', tell));
    socket.write(REQUEST('/slow'));
    await begun;
    const ended = app.close();
    // It has begun to end once nobody new is let in.
    while (!(await refused(port)));
    socket.write(REQUEST('/slow'));
    answer();
    await closed;
    await ended;
    const [, first = '', second = ''] = heard.split('HTTP/1.1 ');
    expect(first).toMatch(/^200 OK[^]*\{"slow":true\}/);
    expect(second).toMatch(
      /^503 Service Unavailable[^]*retry-after: 1[^]*"code":"shutting_down","outcome":"none"/i,
    );
  });
});
