// The menus below the video: player, manifest, quality, audio, subtitles, and options of the consumer.

import { bitrate, el, size } from './format.js';

/** An open menu is not filled. Browsers without `:open` treat each focused menu as open. */
const OPEN = CSS.supports('selector(:open)') ? ':open' : ':focus';
const RANGES = [[65536, '64 KiB'], [262144, '256 KiB'], [1048576, '1 MiB']];

export class Controls {
  /** `choose(name, value)` is called for each choice of the viewer. */
  constructor(engines, choose) {
    this.choose = choose;
    this.players = Object.entries(engines).map(([id, engine]) => {
      const input = el('input', { type: 'radio', name: 'player', value: id, onchange: () => choose('player', id) });
      return { id, input, label: el('label', {}, input, el('span', {}, engine.name)) };
    });
    this.menus = {
      variant: this.menu('variant', 'Manifest'),
      quality: this.menu('quality', 'Quality'),
      audio: this.menu('audio', 'Audio'),
      text: this.menu('text', 'Subtitles'),
      range: this.menu('range', 'Range size'),
    };
    this.append = el('input', { type: 'checkbox', onchange: () => choose('append', this.append.checked ? '1' : '0') });
    this.appendLabel = el('label', { class: 'check' }, this.append, 'Append to the player');
    this.element = el('form', { class: 'controls', onsubmit: (event) => event.preventDefault() },
      el('fieldset', { class: 'players' }, el('legend', {}, 'Player'), ...this.players.map((p) => p.label)),
      el('div', { class: 'menus' }, ...Object.values(this.menus).map((m) => m.label), this.appendLabel));
  }

  menu(name, title) {
    const select = el('select', { onchange: () => this.choose(name, select.value) });
    return { select, label: el('label', {}, el('span', {}, title), select), shown: '' };
  }

  /** Shows the variants of a newly chosen player. Its tracks are not known yet. */
  show(view) {
    const { name, variant, options } = view;
    for (const player of this.players) {
      player.input.checked = player.id === name;
      player.label.hidden = !view.variants(player.id);
    }
    this.fill('variant', view.variants(name).map((v) => [v.id, v.label]), variant);
    this.consuming = name === 'consumer';
    this.append.checked = options.append !== '0';
    this.appendLabel.hidden = !this.consuming;
    const ranges = this.consuming && variant === 'ranges' ? RANGES : [];
    this.fill('range', ranges, Number(options.range) || 262144);
    for (const name of ['quality', 'audio', 'text']) this.fill(name, [], '');
  }

  /** Shows the tracks that the engine offers and plays. */
  update(engine, quality, state) {
    if (!engine) return;
    const now = state.levels[state.level];
    const auto = now && quality === 'auto' && !this.consuming ? `Automatic (${size(now)})` : 'Automatic';
    const levels = state.levels.map((level, i) => [i, `${size(level)} · ${bitrate(level.bitrate)}`]);
    const hasChoice = state.levels.length > 1;
    if (this.consuming) this.fill('quality', hasChoice ? levels : [], state.level);
    else this.fill('quality', hasChoice ? [['auto', auto], ...levels] : [], quality);
    this.fill('audio', state.audios.length > 1 ? state.audios.map((a, i) => [i, a.label]) : [], state.audio);
    this.fill('text', state.texts.length > 0 ? [[-1, 'None'], ...state.texts.map((t, i) => [i, t.label])] : [], state.text);
  }

  /** Fills a menu and hides an empty one. Changes the page only if the menu differs. */
  fill(name, choices, chosen) {
    const menu = this.menus[name];
    const shown = JSON.stringify([choices, chosen]);
    if (menu.shown === shown || menu.select === document.activeElement && menu.select.matches(OPEN)) return;
    menu.shown = shown;
    menu.select.replaceChildren(...choices.map(([value, label]) => el('option', { value: String(value) }, label)));
    menu.select.value = String(chosen);
    menu.label.hidden = choices.length === 0;
  }
}
