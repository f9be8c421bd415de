import './global-setup';
import { removeCompiledSource } from './compiled-source';

/** Jest runs this also when tests fail; should the run be killed, the server's guard does the same. */
export default async function globalTeardown(): Promise<void> {
  await globalThis.testServer?.stop();
  await removeCompiledSource();
}
