// Runs every test file. Those that take minutes are started first, so that none of them is the last one on its own.
//
//   node run_all.mjs CONCURRENCY      prints TAP; fails if a test fails
import fs from 'node:fs';
import path from 'node:path';
import { run } from 'node:test';
import { tap } from 'node:test/reporters';

const LONG = ['text', 'waiting', 'players', 'protected', 'tracks', 'lab', 'player_times', 'text_details'].map((name) => `${name}.test.mjs`);
const all = fs.readdirSync(import.meta.dirname).filter((name) => name.endsWith('.test.mjs'));
const files = [...LONG, ...all.filter((name) => !LONG.includes(name))].map((name) => path.join(import.meta.dirname, name));

const tests = run({ files, concurrency: Number(process.argv[2]) });
tests.on('test:fail', () => { process.exitCode = 1; });
tests.compose(tap).pipe(process.stdout);
