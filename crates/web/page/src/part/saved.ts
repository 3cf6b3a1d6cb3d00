// The game under way, kept in this tab: leaving the page and coming back does not lose it.

import type { Effort, Side } from '../api';

const KEY = 'selfmate-game';

export interface SavedGame {
  /** The start position; null for the usual one. */
  start: string | null;
  /** Moves in UCI. */
  played: string[];
  human: Side;
  /** The opponent's spec and how long it thinks, as they were when the game began. */
  rival: string;
  pace: Effort;
  /** The opponent searches a tree: it tells several lines at no cost. */
  searchesTree: boolean;
  seed: number;
  /** The result of a resignation. */
  resigned: string | null;
  /** White's expected result after so many moves, where somebody has judged it. */
  values: (number | null)[];
}

export function savedGame(): SavedGame | null {
  try {
    const found = JSON.parse(sessionStorage.getItem(KEY) ?? 'null') as SavedGame | null;
    return found !== null && Array.isArray(found.played) && Array.isArray(found.values) ? found : null;
  } catch {
    return null;
  }
}

export function saveGame(game: SavedGame): void {
  try {
    sessionStorage.setItem(KEY, JSON.stringify(game));
  } catch {
    // Without room the game is played all the same.
  }
}
