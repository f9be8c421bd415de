import { transformFile } from '@swc/core';
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { isAlive } from '../../src/postgres/embedded/cluster';

const ROOT = path.join(__dirname, '..', '..');
const CACHE = path.join(ROOT, 'node_modules', '.cache', 'compiled-source');
const made = new Map<string, Promise<string>>();

/**
 * A folder of `src/` as JavaScript that plain `node` runs in a process of its own, made once for each test process. It lies
 * below node_modules, so that packages are found.
 */
export async function compileSource(folder: string): Promise<string> {
  const known = made.get(folder) ?? compileInto(folder);
  made.set(folder, known);
  return known;
}

/** At the end of a run: its test processes are this one or gone. */
export async function removeCompiledSource(): Promise<void> {
  for (const pid of await readdir(CACHE).catch(() => [])) {
    if (Number(pid) === process.pid || !isAlive(Number(pid))) {
      await rm(path.join(CACHE, pid), { recursive: true, force: true });
    }
  }
}

async function compileInto(folder: string): Promise<string> {
  const target = path.join(CACHE, String(process.pid), folder);
  const building = `${target}.new`;
  const source = path.join(ROOT, 'src', folder);
  for (const name of await readdir(source, { recursive: true })) {
    if (!name.endsWith('.ts')) continue;
    const { code } = await transformFile(path.join(source, name), { cwd: ROOT });
    const file = path.join(building, name.replace(/\.ts$/, '.js'));
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, code);
  }
  await rm(target, { recursive: true, force: true });
  await rename(building, target);
  return target;
}
