// All runs, with forms to start and resume a training.

import { about, failure, get, post, run } from '../api';
import type { About, RunState, RunSummary } from '../api';
import { announce, field, h, replace, select } from '../dom';
import { count, span } from '../format';
import { pollShowingErrors } from '../part/poll';
import { spark } from '../part/spark';

const PAUSE = 3000;
const LEAST_MINUTES = 0.05;

export const stateNames: Record<RunState, string> = {
  training: 'training',
  stopping: 'stopping',
  elsewhere: 'trained by another process',
  stopped: 'stopped',
};

export function runsPage(root: HTMLElement): () => void {
  const list = h('div', { class: 'cards', 'aria-live': 'off' }, h('p', { class: 'hint' }, 'Loading…'));
  const problem = h('div');
  const actionError = h('div');
  root.append(
    h(
      'div',
      { class: 'title-row' },
      h('h1', {}, 'Runs'),
      h('button', { type: 'button', class: 'primary', onclick: () => openForm() }, 'New training'),
    ),
    problem,
    actionError,
    list,
  );
  const control = new AbortController();
  const acted = (error?: unknown): void => {
    replace(actionError, error !== undefined && failure(error));
    void poll.now();
  };
  const poll = pollShowingErrors(problem, async () => {
    const runs = await get<RunSummary[]>('/api/runs', control.signal);
    replace(list, ...(runs.length === 0 ? [nothing()] : runs.map((summary) => card(summary, acted))));
  }, PAUSE);
  return () => {
    control.abort();
    poll.stop();
  };
}

function nothing(): HTMLElement {
  return h(
    'div',
    { class: 'card empty' },
    h('h2', {}, 'Nothing has been trained yet'),
    h(
      'p',
      {},
      'A run plays chess against itself, knowing only the rules, and learns from its own games. After ten minutes it already beats random moves.',
    ),
    h('button', { type: 'button', class: 'primary', onclick: () => openForm() }, 'Start the first training'),
  );
}

function card(summary: RunSummary, acted: Acted): HTMLElement {
  const link = `#/run/${encodeURIComponent(summary.name)}`;
  if (summary.error !== null) {
    return h(
      'article',
      { class: 'card' },
      h('h2', {}, summary.name),
      h('p', { class: 'problem' }, `This run cannot be read: ${summary.error}`),
    );
  }
  const { rating } = summary;
  return h(
    'article',
    { class: 'card' },
    h(
      'div',
      { class: 'card-head' },
      h('h2', {}, h('a', { href: link, 'data-key': `open ${summary.name}` }, summary.name)),
      h('span', { class: `state state-${summary.state}` }, stateNames[summary.state]),
    ),
    h(
      'dl',
      { class: 'facts' },
      fact('Learner', summary.learner ?? '–'),
      fact('Trained', trainedText(summary)),
      fact('Games', count(summary.games)),
      fact('Elo', rating === null ? '–' : `${count(rating.elo)} ± ${count((rating.high - rating.low) / 2)}`),
      fact('Age', summary.age_s === null ? '–' : span(summary.age_s)),
      summary.alarm_count > 0 && fact('Alarms', count(summary.alarm_count)),
    ),
    summary.spark.length > 1 &&
      spark(summary.spark, `${summary.spark_of === 'elo' ? 'Elo' : 'Value loss'} over the training`),
    summary.state === 'stopped' && summary.reason !== null && summary.reason !== 'stopped' && h('p', { class: 'hint' }, summary.reason),
    h('div', { class: 'row' }, ...actions(summary, acted)),
  );
}

/** `12 min of 20 min`, or `12 min` without a time budget. */
export function trainedText({ trained_s: seconds, budget }: RunSummary): string {
  return budget?.minutes == null ? span(seconds) : `${span(seconds)} of ${span(60 * budget.minutes)}`;
}

/** The remaining budget of a training; null without a budget. */
export function leftText({ trained_s: seconds, budget, games }: RunSummary): string | null {
  if (budget?.minutes != null) return span(Math.max(0, 60 * budget.minutes - seconds));
  return budget?.games == null ? null : `${count(Math.max(0, budget.games - games))} games`;
}

export function fact(name: string, value: string): HTMLElement {
  return h('div', {}, h('dt', {}, name), h('dd', {}, value));
}

/** Called after an action, with its error if it failed. */
export type Acted = (error?: unknown) => void;

/** Endgame learners and the start position of games against them. */
const endings: Record<string, string> = {
  krk: '8/8/4k3/8/3R4/4K3/8/8 w - - 0 1',
  kqk: '8/8/4k3/8/3Q4/4K3/8/8 w - - 0 1',
  kpk: '8/8/4k3/8/3P4/4K3/8/8 w - - 0 1',
};

/** Links to play against a trained player and to look inside its search, if it has one. */
export function playerLinks(player: string, run: RunSummary): { play: string; inside: string | null } {
  const ending = endings[run.learner ?? ''];
  const query = new URLSearchParams({ player });
  if (ending !== undefined) query.set('fen', ending);
  const inside = run.searches_tree ? `#/inside?${query}` : null;
  // The trained side is White, which has the winning material.
  if (ending !== undefined) query.set('side', 'black');
  return { play: `#/play?${query}`, inside };
}

/** The buttons of a run. */
export function actions(summary: RunSummary, acted: Acted): HTMLElement[] {
  const act = (label: string, rest: string, announcement: string): HTMLElement => {
    const button = h('button', { type: 'button', 'data-key': `${label} ${summary.name}` }, label);
    button.addEventListener('click', () => {
      button.disabled = true;
      post(run(summary.name, rest), {})
        .then(() => {
          announce(`${summary.name}: ${announcement}`);
          acted();
        })
        .catch(acted);
    });
    return button;
  };
  const buttons: HTMLElement[] = [];
  if (summary.state === 'training') buttons.push(act('Stop', '/stop', 'stopping'));
  if (summary.state === 'stopped') {
    buttons.push(h('button', { type: 'button', 'data-key': `Resume ${summary.name}`, onclick: () => openResume(summary, acted) }, 'Resume'));
  }
  if (summary.checkpoints.length > 0) {
    const links = playerLinks(`run:${summary.name}`, summary);
    buttons.push(h('a', { class: 'button', href: links.play, 'data-key': `play ${summary.name}` }, 'Play against it'));
    if (links.inside !== null) {
      buttons.push(h('a', { class: 'button', href: links.inside, 'data-key': `inside ${summary.name}` }, 'Look inside'));
    }
    if (endings[summary.learner ?? ''] !== undefined) {
      const link = `#/endgame?run=${encodeURIComponent(summary.name)}`;
      buttons.push(h('a', { class: 'button', href: link, 'data-key': `endgame ${summary.name}` }, 'Heat maps'));
    }
  }
  return buttons;
}

/** Asks how long the run should continue. */
function openResume(summary: RunSummary, acted: Acted): void {
  about()
    .then((info) => showResume(summary, info, acted))
    .catch(acted);
}

/** Describes the bounds of the last budget that still apply; null if there are none. */
function keptBounds({ budget, games, steps }: RunSummary): string | null {
  const bounds: string[] = [];
  if (budget?.games != null && budget.games > games) bounds.push(`${count(budget.games)} games`);
  if (budget?.steps != null && budget.steps > steps) bounds.push(`${count(budget.steps)} steps`);
  return bounds.length === 0 ? null : `It also stops at ${bounds.join(' or ')}, as before.`;
}

function showResume(summary: RunSummary, info: About, acted: Acted): void {
  const planned = summary.budget?.minutes ?? null;
  const left = planned === null ? 0 : planned - summary.trained_s / 60;
  // The rest of the budget; if it is used up, the same amount again.
  const suggested = left >= LEAST_MINUTES ? left : (planned ?? 10);
  // Rounded down, so that it does not exceed the budget.
  const minutes = h('input', { type: 'number', min: LEAST_MINUTES, step: 'any', value: Math.floor(100 * suggested) / 100, required: true });
  const threads = h('input', { type: 'number', min: 1, max: info.cores, value: Math.min(info.cores, summary.threads ?? info.cores), required: true });
  const kept = keptBounds(summary);
  const problem = h('div');
  const dialog = h(
    'dialog',
    { class: 'sheet', 'aria-labelledby': 'resume-training' },
    h(
      'form',
      {
        onsubmit: (event: Event) => {
          event.preventDefault();
          post(run(summary.name, '/resume'), { more_minutes: Number(minutes.value), threads: Number(threads.value) })
            .then(() => {
              dialog.close();
              announce(`${summary.name}: resumed`);
              acted();
            })
            .catch((error: unknown) => replace(problem, failure(error)));
        },
      },
      h('h2', { id: 'resume-training' }, `Resume ${summary.name}`),
      h('p', {}, `Trained ${trainedText(summary)}${summary.budget?.is_spent === true ? '; the budget is spent' : ''}.`),
      kept !== null && h('p', {}, kept),
      h(
        'div',
        { class: 'columns' },
        field('More minutes', minutes, left >= LEAST_MINUTES ? 'The rest of the budget; change it if you like' : 'Counted from now'),
        field('Threads', threads, info.cores === 1 ? 'This machine has one core' : `This machine has ${info.cores} cores`),
      ),
      problem,
      h(
        'div',
        { class: 'row end' },
        h('button', { type: 'button', onclick: () => dialog.close() }, 'Cancel'),
        h('button', { type: 'submit', class: 'primary' }, 'Resume'),
      ),
    ),
  );
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

/** The form for a new training. */
function openForm(): void {
  about()
    .then(showForm)
    .catch((error: unknown) => document.getElementById('main')?.prepend(failure(error)));
}

function showForm(info: About): void {
  const name = h('input', {
    type: 'text',
    required: true,
    maxlength: 60,
    pattern: '[A-Za-z0-9_][A-Za-z0-9_.\\-]*',
    autocomplete: 'off',
    value: `run-${new Date().toISOString().slice(5, 16).replace(/[-T:]/g, '')}`,
  });
  const learner = select(info.learners.map((entry) => [entry.name, entry.name]));
  const preset = select([]);
  const presets = (): void => {
    const chosen = info.learners.find((entry) => entry.name === learner.value);
    replace(preset, ...(chosen?.presets ?? []).map((text) => h('option', { value: text }, text)));
  };
  learner.addEventListener('change', presets);
  presets();
  const minutes = h('input', { type: 'number', min: 0.1, step: 'any', value: 10, required: true });
  const seed = h('input', { type: 'number', min: 0, step: 1, value: 1, required: true });
  const threads = h('input', { type: 'number', min: 1, max: info.cores, value: info.cores, required: true });
  const settings = h('input', { type: 'text', autocomplete: 'off', maxlength: 2000, placeholder: 'selfplay.simulations.to=200' });
  const problem = h('div');
  const dialog = h(
    'dialog',
    { class: 'sheet', 'aria-labelledby': 'new-training' },
    h(
      'form',
      {
        onsubmit: (event: Event) => {
          event.preventDefault();
          const order = {
            name: name.value,
            learner: learner.value,
            preset: preset.value,
            minutes: Number(minutes.value),
            seed: Number(seed.value),
            threads: Number(threads.value),
            set: settings.value.split(/\s+/).filter(Boolean),
          };
          post('/api/runs', order)
            .then(() => {
              dialog.close();
              location.hash = `#/run/${encodeURIComponent(order.name)}`;
            })
            .catch((error: unknown) => replace(problem, failure(error)));
        },
      },
      h('h2', { id: 'new-training' }, 'New training'),
      field('Name', name, 'Letters, digits, - and _'),
      field('Minutes', minutes, 'You can resume it later'),
      h(
        'div',
        { class: 'columns' },
        field('Learner', learner),
        field('Preset', preset),
        field('Seed', seed, 'The same seed gives the same games'),
        field('Threads', threads, info.cores === 1 ? 'This machine has one core' : `This machine has ${info.cores} cores`),
      ),
      field('Extra settings', settings, 'Optional: key=value, separated by spaces'),
      problem,
      h(
        'div',
        { class: 'row end' },
        h('button', { type: 'button', onclick: () => dialog.close() }, 'Cancel'),
        h('button', { type: 'submit', class: 'primary' }, 'Start'),
      ),
    ),
  );
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
