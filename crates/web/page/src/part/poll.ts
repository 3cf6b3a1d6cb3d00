// Something that is done again and again, one at a time.

export class Poll {
  private timer = 0;
  private isBusy = false;
  private isWanted = false;
  private isStopped = false;

  /** The task tells its own failures. */
  constructor(
    private readonly task: () => Promise<void>,
    private readonly pause: number,
  ) {
    void this.now();
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
    if (!this.isStopped) this.timer = window.setTimeout(() => void this.now(), this.pause);
  }

  stop(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
  }
}
