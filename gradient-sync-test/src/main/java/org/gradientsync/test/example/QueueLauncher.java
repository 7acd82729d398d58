package org.gradientsync.test.example;

import org.gradientsync.spi.Launcher;
import org.gradientsync.spi.Settings;
import org.gradientsync.spi.Transport;

/** Joins the ranks that are threads of a {@link QueueJob}. */
public final class QueueLauncher implements Launcher {
  static final String NAME = "queues";
  static final ThreadLocal<QueueTransport> OF_THREAD = new ThreadLocal<>();

  /** For the service loader. */
  public QueueLauncher() {}

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public boolean launched() {
    return OF_THREAD.get() != null;
  }

  @Override
  public Transport connect(Settings settings) {
    return OF_THREAD.get();
  }
}
