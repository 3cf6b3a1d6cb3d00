// Types and requests of the server's API. They follow src/api/*.rs and /openapi.json.

import { h } from './dom';
import { rejectToken, token } from './token';

export interface Learner { name: string; presets: string[] }
export interface Live { number: number; fen: string; last: string | null; plies: number; value: number | null }
export interface Kind { name: string; description: string; options: [string, string][]; searches_tree: boolean }
export interface About {
  version: string;
  cores: number;
  asks_for_token: boolean;
  watches_cluster: boolean;
  learners: Learner[];
  players: Kind[];
}

export interface RatingShort { elo: number; low: number; high: number; step: number }
export interface Budget { minutes: number | null; games: number | null; steps: number | null; is_spent: boolean }
export type RunState = 'training' | 'stopping' | 'elsewhere' | 'stopped';
export interface RunSummary {
  name: string;
  learner: string | null;
  seed: number | null;
  state: RunState;
  reason: string | null;
  age_s: number | null;
  recorded_s: number | null;
  elapsed_s: number;
  /** Until now, including the time since the last record. */
  trained_s: number;
  budget: Budget | null;
  threads: number | null;
  generation: number;
  games: number;
  positions: number;
  simulations: number;
  steps: number;
  searches_tree: boolean;
  checkpoints: number[];
  rating: RatingShort | null;
  alarm_count: number;
  spark: number[];
  spark_of: string;
  error: string | null;
}
export interface Rating extends RatingShort { elapsed_s: number; generation: number; games: number }
export interface Alarm {
  elapsed_s: number;
  generation: number;
  name: string;
  value: number;
  bound: number;
  meaning: string;
  action: string;
}
export interface RunDetail extends RunSummary {
  ratings: Rating[];
  alarms: Alarm[];
  /** The charts of its learner, in order. */
  charts: ChartInfo[];
  notes: string[];
  /** Damaged files that were skipped. */
  warnings: string[];
  config: Record<string, unknown> | null;
  said: string[];
  /** The moves that lost a tuned engine's games; null for other learners. */
  mistakes: Mistakes | null;
}
export interface Mistakes {
  games: number;
  rows: { kind: string; opening: number; middlegame: number; endgame: number }[];
}
export interface ChartInfo {
  title: string;
  hint: string;
  unit: 'number' | 'amount' | 'share';
  curves: { metric: string; label: string }[];
}
export interface Curves {
  records: number;
  /** Where a feed continues. */
  place: string;
  elapsed_s: number[];
  generation: number[];
  games: number[];
  positions: number[];
  simulations: number[];
  steps: number[];
  values: Record<string, (number | null)[]>;
}
export interface Progress {
  kind: 'progress';
  elapsed_s: number;
  generation: number;
  games: number;
  positions: number;
  simulations: number;
  steps: number;
  values: Record<string, number>;
}
export type Record_ =
  | Progress
  | ({ kind: 'rating' } & Rating)
  | ({ kind: 'alarm' } & Alarm)
  | { kind: 'start' | 'resume' | 'end' };

export type Side = 'white' | 'black';
export interface Move { uci: string; san: string }
export interface Outcome { result: string; reason: string }
export interface Position {
  start: string;
  fen: string;
  turn: 'white' | 'black';
  check: boolean;
  played: Move[];
  legal: Move[];
  outcome: Outcome | null;
}
export interface Share extends Move { share: number }
export interface Ply extends Move {
  fen: string;
  check: boolean;
  value: number | null;
  draw: number | null;
  ms: number | null;
  policy?: Share[];
}
export interface Game {
  number: number;
  white: string;
  black: string;
  start: string;
  plies: Ply[];
  outcome: Outcome;
  opening: string | null;
}
export interface GameRow extends Outcome {
  number: number;
  network: number;
  plies: number;
  from_position: boolean;
}
export interface Generations { sealed: number[]; open: number | null; open_games: number }

export interface Score { cp?: number; mate?: number }
export interface SearchInfo {
  kind: 'info';
  rank: number;
  line: Move[];
  /** Null for a move without visits. */
  score: Score | null;
  value: number | null;
  wdl: [number, number, number] | null;
  visits: number | null;
  prior: number | null;
  depth: number;
  nodes: number;
  ms: number;
}
export interface Choice {
  kind: 'choice';
  played: Move;
  line: Move[];
  score: Score | null;
  value: number | null;
  wdl: [number, number, number] | null;
  depth: number | null;
  nodes: number | null;
  ms: number;
  /** Why an older checkpoint than the newest was used. */
  warning?: string;
}
export interface Verdict {
  kind: 'verdict';
  ply: number;
  fen: string;
  check: boolean;
  played: Move | null;
  value: number | null;
  best: Move | null;
}
/** The proven result for the side to move. */
export type Proof = 'win' | 'draw' | 'loss';
/** Values are for the side that plays the move. */
export interface Branch extends Move { visits: number; prior: number; q: number | null; proof?: Proof }
export interface Snapshot {
  kind: 'snapshot';
  /** Simulations allowed and used: fewer once the result is proven. */
  sims: number;
  simulations: number;
  best: Move;
  value: number;
  proof: Proof | null;
  moves: Branch[];
}
export interface Ready { kind: 'ready'; tree: string }
export interface Failure { kind: 'error'; message: string }
export interface TreeNode {
  fen: string;
  visits: number;
  value: number;
  proof: Proof | null;
  moves: Branch[];
}

export interface MatchReport {
  a: string;
  b: string;
  games: number;
  wins: number;
  draws: number;
  losses: number;
  score: number;
  /** Null without games. An end of the 95 % interval is null when it is unbounded. */
  elo: number | null;
  elo_error: number | null;
  elo_low: number | null;
  elo_high: number | null;
  elo_is_bound: boolean;
  los: number;
  pentanomial: number[];
  terminations: Record<string, number>;
  is_finished: boolean;
}
export interface Match {
  id: string;
  state: 'waiting' | 'playing' | 'stopped' | 'finished';
  error: string | null;
  total: number;
  limit: string;
  report: MatchReport;
}
export interface MatchDetail extends Match {
  games: {
    number: number;
    a_is_white: boolean;
    a_points: number;
    reason: string;
    plies: number;
    opening: string | null;
  }[];
}
export interface Ladder {
  limit: string;
  matches: number;
  repeated: number;
  players: { name: string; elo: number; elo_error: number; games: number; points: number; is_anchor: boolean }[];
}

export interface Ending {
  run: string;
  ending: string;
  /** In the order White's king, Black's king, White's other piece. */
  pieces: string[];
  steps: number[];
}
export interface ValueMap {
  run: string;
  step: number;
  place: string;
  piece: string;
  turn: 'white' | 'black';
  discount: number;
  learned: (number | null)[];
  tablebase: (number | null)[];
  plies: (number | null)[];
  error: number;
}
export interface EndingMove extends Move {
  tablebase: number;
  plies: number | null;
  learned: number;
  is_best: boolean;
}
export interface EndingPosition {
  step: number;
  fen: string;
  turn: 'white' | 'black';
  learned: number;
  tablebase: number;
  plies: number | null;
  outcome: Outcome | null;
  moves: EndingMove[];
}

export interface PlayerInfo { spec: string; searches_tree: boolean }

export interface Limit { sims?: number; depth?: number; movetime_ms?: number }

/** An error reported by the server. */
export class ApiError extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

const SILENT = 'The server does not answer. Is `selfmate serve` still running?';

/** Replaces the messages of browsers for an unreachable server, which differ and do not help. */
function readable(error: unknown): unknown {
  return error instanceof TypeError ? new ApiError(0, SILENT) : error;
}

async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  const known = token();
  if (known !== null) headers.set('Authorization', `Bearer ${known}`);
  if (init.body !== undefined) headers.set('Content-Type', 'application/json');
  const response = await fetch(path, { ...init, headers }).catch((error: unknown) => {
    throw readable(error);
  });
  if (!response.ok) {
    if (response.status === 401) rejectToken();
    const text = await response.text();
    let message = text || response.statusText;
    try {
      message = (JSON.parse(text) as { error: string }).error;
    } catch {
      // The response may come from a proxy and not be JSON.
    }
    throw new ApiError(response.status, message);
  }
  return response;
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await request(path, { signal })).json() as Promise<T>;
}

export async function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  const response = await request(path, { method: 'POST', body: JSON.stringify(body), signal });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.includes('json') === true;
  return (isJson ? JSON.parse(text) : text) as T;
}

/** Sends a POST request and passes on each line of the response as it arrives. */
export async function stream<T>(
  path: string,
  body: unknown,
  take: (line: T) => void,
  signal?: AbortSignal,
): Promise<void> {
  const response = await request(path, { method: 'POST', body: JSON.stringify(body), signal });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (reader === undefined) return;
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read().catch((error: unknown) => {
      throw readable(error);
    });
    if (done) return;
    const lines = (rest + value).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (line === '') continue;
      const parsed = JSON.parse(line) as T | Failure;
      if ((parsed as Failure).kind === 'error') {
        throw new ApiError(500, (parsed as Failure).message);
      }
      take(parsed as T);
    }
  }
}

let known: Promise<About> | null = null;

/** Information about the server; requested once. */
export function about(): Promise<About> {
  known ??= get<About>('/api/about').catch((error: unknown) => {
    known = null;
    throw error;
  });
  return known;
}

export function run(name: string, rest = ''): string {
  return `/api/runs/${encodeURIComponent(name)}${rest}`;
}

/** An error message; nothing for aborted requests. */
export function failure(error: unknown): HTMLElement {
  if (error instanceof DOMException && error.name === 'AbortError') return h('span', { hidden: true });
  const text = error instanceof Error ? error.message : String(error);
  return h('p', { class: 'problem', role: 'alert' }, text);
}
