package org.gradientsync.tcp;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.backend.LauncherVariables;
import org.gradientsync.core.backend.WaitingFile;
import org.gradientsync.spi.Launcher;
import org.gradientsync.spi.Settings;
import org.gradientsync.spi.Transport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Joins ranks that reach each other by TCP: those with torchrun's variables ({@code RANK}, {@code
 * WORLD_SIZE}, {@code MASTER_ADDR}, {@code MASTER_PORT}), or with the settings {@code tcp.rank},
 * {@code tcp.size} and {@code tcp.master}.
 *
 * <p>With variables or system properties, the process is the rank: it stays in the job until the
 * JVM exits. With settings of the builder, each sync's thread may be a rank of its own, which
 * leaves the job when its last sync closes, and may then join another one.
 */
public final class TcpLauncher implements Launcher {
  static final String NAME = "tcp";

  private static final Logger log = LoggerFactory.getLogger(TcpLauncher.class);
  private static final Settings OF_PROCESS = new Settings(Map.of());
  private static final int OF_BUILDER = 200;
  private static final int OF_TORCHRUN = 150; // started by an mpirun, perhaps
  private static final int OF_ENVIRONMENT = 50;

  private static final Map<Place, Rank> RANKS = new HashMap<>();

  /** The place of a rank: one of this process. */
  private record Place(int rank, int size, String host, int port) {
    static Place of(Coordinates own) {
      return new Place(own.rank(), own.size(), own.host(), own.port());
    }
  }

  /** A rank of this process. Its lock is held while it joins its job. */
  private static final class Rank {
    private final Coordinates own;
    private volatile TcpTransport transport; // null before it has joined

    Rank(Coordinates own) {
      this.own = own;
    }

    boolean isClosed() {
      TcpTransport last = last();
      return last != null && last.isClosed();
    }

    /** That of the survivors, if ranks were lost. */
    TcpTransport last() {
      TcpTransport last = transport;
      while (last != null && last.isClosed() && last.next() != null) {
        last = last.next();
      }
      return last;
    }
  }

  /** For the service loader. */
  public TcpLauncher() {}

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public Set<String> settings() {
    return Coordinates.SETTINGS;
  }

  @Override
  public boolean launched() {
    return Coordinates.areIn(OF_PROCESS) || Coordinates.areIn(LauncherVariables.environment());
  }

  @Override
  public boolean launched(Settings settings) {
    return Coordinates.areIn(settings) || launched();
  }

  /**
   * Settings say more than the environment, in which mpirun's variables count first, unless
   * torchrun itself has set the others: mpirun may have started torchrun, once on each node.
   */
  @Override
  public int priority(Settings settings) {
    if (Coordinates.areIn(settings)) {
      return OF_BUILDER;
    }
    return LauncherVariables.environment().containsKey("TORCHELASTIC_RUN_ID")
        ? OF_TORCHRUN
        : OF_ENVIRONMENT;
  }

  @Override
  public Transport connect(Settings settings) {
    Coordinates own = Coordinates.of(settings, LauncherVariables.environment());
    Rank rank;
    synchronized (RANKS) {
      RANKS.values().removeIf(Rank::isClosed);
      rank = RANKS.computeIfAbsent(Place.of(own), place -> new Rank(own));
    }
    requireSame(rank.own, own);
    synchronized (rank) { // other ranks of this process join at the same time
      rank.transport = rank.last();
      if (rank.transport == null || rank.transport.isClosed()) {
        rank.transport = join(own, rank, settings);
        WaitingFile.meet();
        synchronized (RANKS) {
          RANKS.put(Place.of(own), rank); // another thread may have removed it
        }
      }
      return rank.transport;
    }
  }

  /** All syncs of a rank share its connections. */
  private static void requireSame(Coordinates first, Coordinates own) {
    if (!own.equals(first)) {
      String differs =
          own.silenceNanos() != first.silenceNanos()
              ? "elastic, or elastic.silence"
              : !own.network().equals(first.network()) ? "tcp.interface" : "tcp.secret, or others";
      throw new UnavailableException(
          ("a sync of this rank has joined the job with other settings: %s, differs=%s;"
                  + " give all syncs of a rank the same")
              .formatted(own, differs));
    }
  }

  private static TcpTransport join(Coordinates own, Rank rank, Settings settings) {
    String given = LauncherVariables.environment().getOrDefault("GRADIENTSYNC_HOSTS", "");
    List<String> hosts = given.isEmpty() ? List.of() : List.of(given.split(","));
    try {
      return new TcpTransport(JobStart.first(own, settings, hosts).join());
    } catch (RuntimeException | Error e) {
      synchronized (RANKS) {
        RANKS.remove(Place.of(own), rank); // the next attempt begins anew
      }
      throw e;
    }
  }
}
