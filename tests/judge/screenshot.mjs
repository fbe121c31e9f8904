// Makes docs/images/page.jpg: the player page in Chromium, a few seconds into the built-in film.
//
//   scripts/screenshot.sh
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { begun, launch, open } from './browser.mjs';

const root = path.resolve(import.meta.dirname, '../..');
const binary = process.env.HEADWATER ?? path.join(root, 'target/debug/headwater');
const child = spawn(binary, ['serve', '--listen', '127.0.0.1:0'], { stdio: ['ignore', 'pipe', 'ignore'] });
const [line] = await once(child.stdout, 'data');
const server = { url: String(line).trim().split(' ').pop() };
const browser = await launch();
try {
  assert.ok(browser, 'Chromium is not installed');
  const { page, until } = await open(browser, server, 'Headwater', 'engine=mse');
  await page.setViewportSize({ width: 1100, height: 900 });
  await until('playback', begun);
  await until('six seconds of film', () => window.headwater.state().currentTime > 6);
  await page.screenshot({ path: path.join(root, 'docs/images/page.jpg'), type: 'jpeg', quality: 70 });
} finally {
  await browser?.close();
  child.kill();
}
