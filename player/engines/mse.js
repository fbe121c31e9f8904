// Our player, with the interface of the other engines.
import { MsePlayer } from '../mse.js';
import { MediaSourceClass } from '../source.js';
import { addTexts, audioLabels, levelOf, nativeTexts } from './common.js';

export const name = 'Headwater';
export const variants = [];

export async function start({ video, path, title, report, session }) {
  if (!MediaSourceClass) throw new Error('This browser does not support Media Source Extensions. Choose the player of the browser.');
  const player = new MsePlayer(video, path, title, report, session);
  await player.open();
  addTexts(video, path, title);
  const [videoTrack, audioTrack] = ['video', 'audio'].map((kind) => player.tracks.find((track) => track.kind === kind));
  return {
    levels: () => videoTrack?.choices.map(levelOf) ?? [],
    level: () => videoTrack?.level() ?? -1,
    quality: (index) => videoTrack?.choose(index),
    audios: () => audioLabels(audioTrack?.choices ?? []),
    audio: () => (audioTrack?.chosen === 'auto' ? audioTrack.current : audioTrack?.chosen ?? -1),
    chooseAudio: (index) => { report.expect('audio'); audioTrack?.choose(index); },
    ...nativeTexts(video),
    close: () => player.close(),
  };
}
