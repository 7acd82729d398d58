package org.gradientsync.tcp;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.gradientsync.UnavailableException;
import org.gradientsync.spi.Settings;
import org.gradientsync.spi.Timeouts;

/**
 * A rank's place in its job, from settings or from the environment.
 *
 * @param rank this rank's number
 * @param size the number of ranks
 * @param host where rank 0 listens
 * @param port where rank 0 listens
 * @param localRank the number on the node, or -1 if nobody said
 * @param localSize the number of ranks on the node, or -1 if nobody said
 * @param secret the job's, or an empty text
 * @param network the name or address of the interface to use, or an empty text
 * @param ofProcess whether the process is the rank, and not one of its threads
 * @param joins whether it joins a job that has started, in which it gets another number
 * @param silenceNanos how long a rank of the job may send nothing; 0 for any time
 */
record Coordinates(
    int rank,
    int size,
    String host,
    int port,
    int localRank,
    int localSize,
    String secret,
    String network,
    boolean ofProcess,
    boolean joins,
    long silenceNanos) {
  static final String RANK = "tcp.rank";
  static final String SIZE = "tcp.size";
  static final String MASTER = "tcp.master";
  static final String SECRET = "tcp.secret";
  static final String INTERFACE = "tcp.interface";

  /** The settings of this module. */
  static final Set<String> SETTINGS = Set.of(RANK, SIZE, MASTER, SECRET, INTERFACE);

  /** Of a job: far beyond any, as a mistyped number takes memory for each rank. */
  private static final int MOST_RANKS = 1 << 16;

  private static final int MOST_PORT = 0xffff;
  private static final String JOIN_VARIABLE = "GRADIENTSYNC_JOIN";
  private static final String SECRET_VARIABLE = "GRADIENTSYNC_SECRET";
  private static final List<String> VARIABLES =
      List.of("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT");
  private static final List<String> OF_BUILDER = List.of(RANK, SIZE, MASTER);
  private static final String ADVICE =
      "; a job over TCP needs RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or all of the "
          + "settings tcp.rank, tcp.size and tcp.master, which no variables complete";

  /** Whether the settings name a rank. */
  static boolean areIn(Settings settings) {
    return OF_BUILDER.stream().anyMatch(name -> settings.get(name).isPresent());
  }

  /**
   * Whether the environment names one rank of a job. Of a rank and a size alone, as other launchers
   * set them, only several ranks do.
   */
  static boolean areIn(Map<String, String> environment) {
    long given = VARIABLES.stream().filter(environment::containsKey).count();
    boolean ofRank = environment.containsKey("RANK") || environment.containsKey("WORLD_SIZE");
    boolean alone =
        given == 2 && environment.containsKey("RANK") && "1".equals(environment.get("WORLD_SIZE"));
    return ofRank && given >= 2 && !alone;
  }

  /**
   * Reads them.
   *
   * @throws UnavailableException if one is missing or not what it should be
   */
  static Coordinates of(Settings settings, Map<String, String> environment) {
    boolean built = areIn(settings);
    Map<String, String> given = new LinkedHashMap<>();
    for (String name : built ? OF_BUILDER : VARIABLES) {
      Optional<String> value =
          built ? settings.get(name) : Optional.ofNullable(environment.get(name));
      given.put(name, value.orElse("").strip());
    }
    given.forEach(
        (name, value) -> {
          if (value.isEmpty()) {
            throw new UnavailableException("not set: " + name + ", given=" + given + ADVICE);
          }
        });
    List<String> names = List.copyOf(given.keySet());
    int rank = number(given, names.get(0), 0, Integer.MAX_VALUE);
    int size = number(given, names.get(1), 1, MOST_RANKS);
    if (rank >= size) {
      throw new UnavailableException(
          "no such rank: %s=%s, %s=%s; ranks are numbered from 0"
              .formatted(names.get(0), rank, names.get(1), size));
    }
    String master = given.get(names.get(2));
    String host = master;
    int port;
    if (built) {
      int colon = host.lastIndexOf(':');
      String text = host.substring(colon + 1);
      port = text.matches("\\d{1,5}") ? Integer.parseInt(text) : 0;
      if (colon < 1 || port < 1 || port > MOST_PORT) {
        throw notAnAddress(names.get(2), master, rank);
      }
      host = host.substring(0, colon);
    } else {
      port = number(given, "MASTER_PORT", 1, MOST_PORT);
      if ("True".equals(environment.get("TORCHELASTIC_USE_AGENT_STORE"))) {
        port = port % MOST_PORT + 1; // torchrun listens at the other itself
      }
    }
    if (host.startsWith("[") && host.endsWith("]")) {
      host = host.substring(1, host.length() - 1);
    }
    if (host.contains(":") && !isAddress(host)) { // no name has a colon
      throw notAnAddress(names.get(2), master, rank);
    }
    String secret = secret(settings, environment, rank);
    Map<String, String> local = built ? Map.of() : environment;
    String advice = ", rank=" + rank + ", size=" + size + "; correct or unset it";
    int localRank =
        local.containsKey("LOCAL_RANK")
            ? number(local, "LOCAL_RANK", 0, rank, " to RANK", advice)
            : -1;
    int localSize =
        local.containsKey("LOCAL_WORLD_SIZE")
            ? number(local, "LOCAL_WORLD_SIZE", 1, size, " to WORLD_SIZE", advice)
            : -1;
    boolean ofProcess =
        !built || settings.get(RANK).get().equals(System.getProperty("gradientsync." + RANK));
    return new Coordinates(
        rank,
        size,
        host,
        port,
        localRank,
        localSize,
        secret,
        settings.get(INTERFACE).orElse(""),
        ofProcess,
        !built && "true".equals(environment.get(JOIN_VARIABLE)),
        settings.elastic() ? Timeouts.nanos(settings.elasticSilence()) : 0);
  }

  private static String secret(Settings settings, Map<String, String> environment, int rank) {
    Optional<String> set = settings.get(SECRET);
    String secret = set.orElse(environment.getOrDefault(SECRET_VARIABLE, "")).strip();
    if (!StandardCharsets.US_ASCII.newEncoder().canEncode(secret)) {
      throw new UnavailableException(
          (set.isPresent() ? SECRET : SECRET_VARIABLE)
              + " has characters that are not ASCII, of which each locale makes other bytes: rank="
              + rank
              + "; take letters and digits, for example of: openssl rand -hex 32");
    }
    return secret;
  }

  private static boolean isAddress(String literal) {
    try {
      return InetAddress.getByName("[" + literal + "]") != null; // no name is looked up
    } catch (UnknownHostException e) {
      return false;
    }
  }

  private static UnavailableException notAnAddress(String name, String value, int rank) {
    return new UnavailableException(
        "not a host%s: %s=%s, rank=%s; give for example %s"
            .formatted(
                name.equals(MASTER) ? " and a port" : "",
                name,
                value,
                rank,
                name.equals(MASTER) ? "node0:29500 or [::1]:29500" : "node0 or ::1"));
  }

  private static int number(Map<String, String> from, String name, int least, int most) {
    return number(from, name, least, most, most == Integer.MAX_VALUE ? "" : " to " + most, ADVICE);
  }

  private static int number(
      Map<String, String> from, String name, int least, int most, String limit, String advice) {
    String text = from.get(name).strip();
    if (text.matches("\\d{1,9}")) {
      int number = Integer.parseInt(text);
      if (number >= least && number <= most) {
        return number;
      }
    }
    throw new UnavailableException(
        "not a number from " + least + limit + ": " + name + "=" + text + advice);
  }

  /** The place in another job of the same processes. */
  Coordinates in(Invitation job, int newRank) {
    return at(newRank, job.size(), job.host(), job.port(), -1, -1, false);
  }

  /** The same, of a rank that joins a job that has started. */
  Coordinates joining() {
    return at(rank, size, host, port, localRank, localSize, true);
  }

  /** The same, with another host to connect to. */
  Coordinates at(String master) {
    return at(rank, size, master, port, localRank, localSize, joins);
  }

  private Coordinates at(
      int newRank, int ranks, String master, int at, int local, int locals, boolean isJoining) {
    return new Coordinates(
        newRank,
        ranks,
        master,
        at,
        local,
        locals,
        secret,
        network,
        ofProcess,
        isJoining,
        silenceNanos);
  }

  /** Where rank 0 listens, for texts. */
  String master() {
    return (host.contains(":") ? "[" + host + "]" : host) + ":" + port;
  }

  /** Without the secret. */
  @Override
  public String toString() {
    return "rank=" + rank + ", size=" + size + ", master=" + master();
  }
}
