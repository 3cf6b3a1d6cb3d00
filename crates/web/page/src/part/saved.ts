// The current game, saved in this tab, so that leaving the page does not lose it.

import type { Limit, Side } from '../api';

const KEY = 'selfmate-game';

export interface SavedGame {
  /** The start position; null for the standard one. */
  start: string | null;
  /** Moves in UCI notation. */
  played: string[];
  human: Side;
  /** The opponent's spec and limit at the start of the game. */
  opponent: string;
  limit: Limit;
  /** True for tree search, which reports several lines at no cost. */
  searchesTree: boolean;
  seed: number;
  /** The result after a resignation. */
  resigned: string | null;
  /** White's expected result by ply, where it is known. */
  values: (number | null)[];
}

export function savedGame(): SavedGame | null {
  try {
    const found = JSON.parse(sessionStorage.getItem(KEY) ?? 'null') as SavedGame | null;
    return found !== null && typeof found.opponent === 'string' && Array.isArray(found.played) && Array.isArray(found.values) ? found : null;
  } catch {
    return null;
  }
}

export function saveGame(game: SavedGame): void {
  try {
    sessionStorage.setItem(KEY, JSON.stringify(game));
  } catch {
    // If there is no space, the game is not saved.
  }
}
