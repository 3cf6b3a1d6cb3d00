// The lines of a search as a table. Scores are in pawns, from White's point of view.

import type { Choice, Side, Thought } from '../api';
import { h } from '../dom';
import { count, percent, score } from '../format';

/** Adds a line at its rank and removes it from its previous rank. */
export function takeThought(round: Map<number, Thought>, thought: Thought): void {
  for (const [rank, { line }] of round) if (line[0]?.uci === thought.line[0]?.uci) round.delete(rank);
  round.set(thought.rank, thought);
}

/** The lines of a report, best first. */
export function ranked(round: Map<number, Thought>): Thought[] {
  return [...round.values()].sort((a, b) => a.rank - b.rank);
}

/** The lines with the played move first. The others may come from a separate search. */
export function withPlayed(lines: Thought[], choice: Choice): Thought[] {
  const isPlayed = (thought: Thought): boolean => thought.line[0]?.uci === choice.played.uci;
  const own = lines.find(isPlayed);
  const { line, score: found, value, wdl, depth, nodes, ms } = choice;
  const played: Thought = {
    kind: 'thought', rank: 1, line, score: found, value, wdl, visits: null, prior: null, depth: depth ?? 0, nodes: nodes ?? 0, ms,
  };
  return [own?.visits != null ? own : played, ...lines.filter((thought) => !isPlayed(thought))];
}

/** `whose` is the caption; `played` is the chosen move. */
export function thoughtTable(lines: Thought[], turn: Side, whose: string, played?: string): HTMLElement {
  const isTree = lines.some(({ visits }) => visits !== null);
  const columns = ['Move', 'Score (pawns, White)', ...(isTree ? ['Visits', 'Prior'] : ['Depth (plies)']), 'Line'];
  const searched = lines[0]?.nodes ?? 0;
  return h(
    'table',
    { class: 'numbers thoughts' },
    h('caption', {}, `${whose} · ${count(searched)} ${isTree ? 'simulations' : 'nodes'}`),
    h('thead', {}, h('tr', {}, ...columns.map((text) => h('th', { scope: 'col' }, text)))),
    h(
      'tbody',
      {},
      ...lines.map((thought) =>
        h(
          'tr',
          { class: played !== undefined && thought.line[0]?.uci === played ? 'chosen' : null },
          h('th', { scope: 'row' }, thought.line[0]?.san),
          h('td', {}, score(thought.score, turn)),
          ...(isTree
            ? [h('td', {}, thought.visits === null ? '–' : count(thought.visits)), h('td', {}, thought.prior === null ? '–' : percent(thought.prior))]
            : [h('td', {}, String(thought.depth))]),
          h('td', { class: 'line-cell' }, thought.line.slice(1, 7).map((move) => move.san).join(' ')),
        ),
      ),
    ),
  );
}
