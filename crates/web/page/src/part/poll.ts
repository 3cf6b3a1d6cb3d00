// Something that is done again and again, one at a time, while somebody looks at the page.

export class Poll {
  private timer = 0;
  private isBusy = false;
  private isWanted = false;
  private isStopped = false;
  private readonly seen = (): void => {
    if (document.hidden) clearTimeout(this.timer);
    else void this.now();
  };

  /** The task tells its own failures. */
  constructor(
    private readonly task: () => Promise<void>,
    private readonly pause: number,
  ) {
    document.addEventListener('visibilitychange', this.seen);
    // In a hidden tab the first request waits until the tab is visible.
    if (!document.hidden) void this.now();
  }

  /** Does it now; whoever asks while it is under way has it done once more. */
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
    // A tab that nobody sees asks for nothing; it is brought up to date when it is seen again.
    if (!this.isStopped && !document.hidden) this.timer = window.setTimeout(() => void this.now(), this.pause);
  }

  stop(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
    document.removeEventListener('visibilitychange', this.seen);
  }
}
