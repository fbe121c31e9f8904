// Our own player behind the same few calls as the others.
import { MsePlayer } from '../mse.js';
import { MediaSourceClass } from '../source.js';
import { levelOf, soundsOf } from './common.js';

export const name = 'Headwater';
export const variants = [];

export async function start({ video, path, title, report }) {
  if (!MediaSourceClass) throw new Error('This browser has no Media Source Extensions. Choose the browser’s own player.');
  const player = new MsePlayer(video, path, title, report);
  await player.open();
  const [picture, sound] = ['video', 'audio'].map((kind) => player.tracks.find((track) => track.kind === kind));
  return {
    levels: () => picture?.choices.map(levelOf) ?? [],
    level: () => picture?.level() ?? -1,
    quality: (index) => picture?.choose(index),
    audios: () => soundsOf(sound?.choices ?? []),
    audio: () => (sound?.chosen === 'auto' ? sound.current : sound?.chosen ?? -1),
    chooseAudio: (index) => { report.expect('audio'); sound?.choose(index); },
    close: () => player.close(),
  };
}
