package org.gradientsync.core.diagnosis;

/** A library thread that makes calls on behalf of another thread. */
public abstract class WorkerThread extends Thread {
  protected WorkerThread(Runnable work, String name) {
    super(work, name);
  }

  /** For which this one made its last call, or null. Reports show it while this one is idle. */
  public abstract Thread requester();
}
