// Repeats a task while the page is visible, one at a time.

import { failure } from '../api';
import { replace } from '../dom';

export class Poll {
  private timer = 0;
  private isBusy = false;
  private isWanted = false;
  private isStopped = false;
  private readonly seen = (): void => {
    if (document.hidden) clearTimeout(this.timer);
    else void this.now();
  };

  /** The task must handle its own errors. */
  constructor(
    private readonly task: () => Promise<void>,
    private readonly pause: number,
  ) {
    document.addEventListener('visibilitychange', this.seen);
    // In a hidden tab the first request waits until the tab is visible.
    if (!document.hidden) void this.now();
  }

  /** Runs the task now. If it is already running, it runs once more afterwards. */
  async now(): Promise<void> {
    clearTimeout(this.timer);
    if (this.isBusy || this.isStopped) {
      this.isWanted = true;
      return;
    }
    this.isBusy = true;
    do {
      this.isWanted = false;
      await this.task();
    } while (this.isWanted && !this.isStopped);
    this.isBusy = false;
    // A hidden tab sends no requests; it is updated when it becomes visible again.
    if (!this.isStopped && !document.hidden) this.timer = window.setTimeout(() => void this.now(), this.pause);
  }

  stop(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
    document.removeEventListener('visibilitychange', this.seen);
  }
}

/** A poll that shows the error of its task in `problem` until the task succeeds. */
export function pollShowingErrors(problem: HTMLElement, task: () => Promise<void>, pause: number): Poll {
  const shown = async (): Promise<void> => {
    try {
      await task();
      replace(problem);
    } catch (error) {
      replace(problem, failure(error));
    }
  };
  return new Poll(shown, pause);
}
