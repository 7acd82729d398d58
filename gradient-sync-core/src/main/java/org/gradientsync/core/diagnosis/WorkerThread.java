package org.gradientsync.core.diagnosis;

/** A library thread that makes calls on behalf of another thread. */
public abstract class WorkerThread extends Thread {
  private volatile String interruption = "interrupted";

  protected WorkerThread(Runnable work, String name) {
    super(work, name);
  }

  /** For which this one made its last call, or null. Reports show it while this one is idle. */
  public abstract Thread requester();

  /** Interrupts this thread, for good. Its call says why. */
  public void interrupt(String why) {
    interruption = why;
    interrupt();
  }

  /** Why the current thread, of any kind, was interrupted. */
  public static String interruption() {
    return Thread.currentThread() instanceof WorkerThread worker
        ? worker.interruption
        : "interrupted";
  }
}
