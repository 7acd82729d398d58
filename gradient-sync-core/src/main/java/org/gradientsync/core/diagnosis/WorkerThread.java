package org.gradientsync.core.diagnosis;

/** A library thread that makes calls on behalf of another thread. */
public abstract class WorkerThread extends Thread {
  protected WorkerThread(Runnable work, String name) {
    super(work, name);
  }

  /**
   * The thread for which this one made its last call, or null. While this thread is idle, a report
   * shows what that thread does.
   */
  public abstract Thread requester();
}
