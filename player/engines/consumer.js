// The consumer of the paper, with the interface of the other engines.
import { Consumer } from '../consumer.js';
import { MediaSourceClass, playable } from '../source.js';
import { levelOf } from './common.js';

export const name = 'Consumer';
export const variants = [{ id: 'segments', label: 'Whole segments' }, { id: 'ranges', label: 'Ranges of one file' }];

export async function start({ video, path, title, report, variant, kind, options }) {
  const append = options.append !== '0';
  if (append && !MediaSourceClass) throw new Error('This browser does not support Media Source Extensions. Turn off “Append to the player”.');
  const rangeBytes = Math.min(Math.max(Number(options.range) || 262144, 1024), 64 * 1024 * 1024);
  const consumer = new Consumer(video, path, kind, title, report, { mode: variant, append, rangeBytes });
  await consumer.open();
  const lane = () => consumer.lanes.find((l) => l.kind === 'video');
  if (!append) report.bufferedOverride = () => Math.min(...consumer.lanes.map((l) => consumer.bufferedSeconds(l)));
  return {
    silent: !append,
    levels: () => lane()?.choices.map(levelOf) ?? title.renditions.filter((r) => r.kind === 'video' && playable(r)).slice(0, 1).map(levelOf),
    level: () => (lane() ? lane().choices.indexOf(lane().rendition) : 0),
    quality: (index) => index !== 'auto' && consumer.quality(index),
    audios: () => [],
    audio: () => -1,
    chooseAudio: () => {},
    close: () => consumer.close(),
  };
}
