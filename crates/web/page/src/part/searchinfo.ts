// The lines of a search as a table. Scores are in pawns, from White's point of view.

import type { Choice, SearchInfo, Side } from '../api';
import { h } from '../dom';
import { count, percent, score } from '../format';

/** Adds a line at its rank and removes it from its previous rank. */
export function takeInfo(round: Map<number, SearchInfo>, info: SearchInfo): void {
  for (const [rank, { line }] of round) if (line[0]?.uci === info.line[0]?.uci) round.delete(rank);
  round.set(info.rank, info);
}

/** The lines of a report, best first. */
export function ranked(round: Map<number, SearchInfo>): SearchInfo[] {
  return [...round.values()].sort((a, b) => a.rank - b.rank);
}

/** The lines with the played move first. The others may come from a separate search. */
export function withPlayed(lines: SearchInfo[], choice: Choice): SearchInfo[] {
  const isPlayed = (info: SearchInfo): boolean => info.line[0]?.uci === choice.played.uci;
  const own = lines.find(isPlayed);
  const { line, score: found, value, wdl, depth, nodes, ms } = choice;
  const played: SearchInfo = {
    kind: 'info', rank: 1, line, score: found, value, wdl, visits: null, prior: null, depth: depth ?? 0, nodes: nodes ?? 0, ms,
  };
  return [own?.visits != null ? own : played, ...lines.filter((info) => !isPlayed(info))];
}

/** `whose` is the caption; `played` is the chosen move. */
export function infoTable(lines: SearchInfo[], turn: Side, whose: string, played?: string): HTMLElement {
  const isTree = lines.some(({ visits }) => visits !== null);
  const columns = ['Move', 'Score (pawns, White)', ...(isTree ? ['Visits', 'Prior'] : ['Depth (plies)']), 'Line'];
  const searched = lines[0]?.nodes ?? 0;
  return h(
    'table',
    { class: 'numbers search-info' },
    h('caption', {}, `${whose} · ${count(searched)} ${isTree ? 'simulations' : 'nodes'}`),
    h('thead', {}, h('tr', {}, ...columns.map((text) => h('th', { scope: 'col' }, text)))),
    h(
      'tbody',
      {},
      ...lines.map((info) =>
        h(
          'tr',
          { class: played !== undefined && info.line[0]?.uci === played ? 'chosen' : null },
          h('th', { scope: 'row' }, info.line[0]?.san),
          h('td', {}, score(info.score, turn)),
          ...(isTree
            ? [h('td', {}, info.visits === null ? '–' : count(info.visits)), h('td', {}, info.prior === null ? '–' : percent(info.prior))]
            : [h('td', {}, String(info.depth))]),
          h('td', { class: 'line-cell' }, info.line.slice(1, 7).map((move) => move.san).join(' ')),
        ),
      ),
    ),
  );
}
