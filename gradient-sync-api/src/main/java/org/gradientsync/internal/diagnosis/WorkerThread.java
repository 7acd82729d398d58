package org.gradientsync.internal.diagnosis;

/** A thread of the library that makes calls for another one. */
public abstract class WorkerThread extends Thread {
  /**
   * A thread.
   *
   * @param work what it does
   * @param name its name
   */
  protected WorkerThread(Runnable work, String name) {
    super(work, name);
  }

  /**
   * For whom it made its last call: where that is, is what users want to know when this one waits
   * for more to do.
   *
   * @return a thread, or null
   */
  public abstract Thread requester();
}
