package org.gradientsync.tcp;

import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.channels.ServerSocketChannel;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;

/** The ports at which ranks of this process listen. */
final class MasterPort {
  private static final int BACKLOG = 256;
  private static final long PAUSE_NANOS = 20_000_000;
  private static final long REFUSING_MILLIS = 30_000;

  /** Jobs that have not started, by port: they still say why to ranks that come late. */
  private static final Map<Integer, TcpJob> REFUSING = new ConcurrentHashMap<>();

  private MasterPort() {}

  /**
   * Listens.
   *
   * @param address null for all
   * @param port 0 for any
   * @param limitNanos how long to try: who listens there may be about to end
   */
  static ServerSocketChannel listen(InetAddress address, int port, long limitNanos)
      throws IOException {
    TcpJob before = REFUSING.remove(port);
    if (before != null) {
      before.close();
    }
    long start = System.nanoTime();
    while (true) {
      ServerSocketChannel server = ServerSocketChannel.open();
      try {
        server.setOption(StandardSocketOptions.SO_REUSEADDR, true);
        server.bind(new InetSocketAddress(address, port), BACKLOG);
        return server;
      } catch (IOException | RuntimeException | Error e) {
        server.close();
        boolean mayDoBetter = e instanceof BindException && !Thread.currentThread().isInterrupted();
        if (!mayDoBetter || System.nanoTime() - start > limitNanos) {
          throw e;
        }
      }
      LockSupport.parkNanos(PAUSE_NANOS);
    }
  }

  /** Ranks that come late need not wait for their time-out, as long as this process lives. */
  static void refuseForAWhile(int port, TcpJob job) {
    REFUSING.put(port, job);
    Thread thread =
        new Thread(
            () -> {
              try {
                Thread.sleep(REFUSING_MILLIS);
              } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
              }
              REFUSING.remove(port, job);
              job.close();
            },
            "gradient-sync-tcp-refusing");
    thread.setDaemon(true);
    thread.start();
  }
}
