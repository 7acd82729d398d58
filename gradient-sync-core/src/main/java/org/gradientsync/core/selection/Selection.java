package org.gradientsync.core.selection;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.StringJoiner;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;
import org.gradientsync.DataType;
import org.gradientsync.GradientSync;
import org.gradientsync.RankLostException;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.backend.AgreedSettings;
import org.gradientsync.core.backend.Answers;
import org.gradientsync.core.backend.LauncherVariables;
import org.gradientsync.core.backend.NodeIdentity;
import org.gradientsync.core.collectives.CompressedReducer;
import org.gradientsync.core.collectives.messages.GroupCommunicator;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.host.Denormals;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.host.SharedFiles;
import org.gradientsync.core.launch.LaunchedJob;
import org.gradientsync.core.local.LocalTransport;
import org.gradientsync.core.local.LocalWorld;
import org.gradientsync.core.ranks.RankMap;
import org.gradientsync.spi.Availability;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.DeviceProvider;
import org.gradientsync.spi.DeviceRequest;
import org.gradientsync.spi.Launcher;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.ReducerProvider;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Settings;
import org.gradientsync.spi.SyncContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Selects the launcher, then the device, then the reducer. The ranks exchange what they can use, so
 * all of them select the same or all of them throw.
 */
public final class Selection {
  private static final Logger log = LoggerFactory.getLogger(GradientSync.class);

  private static final String SHARED = "shared";
  private static final String SOCKETS = "tcp";
  private static final String BETWEEN_NODES =
      ", sockets between nodes: on a faster network than Ethernet use MPI (gradient-sync-mpi), or for"
          + " GPUs reducer=nccl";

  private static final AtomicBoolean WARNED = new AtomicBoolean(); // in this process

  private final Settings settings;
  private volatile String agreed; // null until it is first needed

  public Selection(Settings settings) {
    this.settings = settings;
  }

  /** What all ranks give alike, as {@link AgreedSettings} writes it. */
  public String agreed() {
    if (agreed == null) {
      agreed = AgreedSettings.of(settings);
    }
    return agreed;
  }

  /**
   * The result of the selection for one rank.
   *
   * @param group the sync's ranks
   * @param communicator a communicator of the same ranks, which closes the group
   * @param wire the type in which FLOAT32 travels, or null without a wire type
   * @param finite whether reductions check that elements are finite
   * @param alternatives the reducers that were not selected, and why
   */
  public record Choice(
      ProcessGroup group,
      GroupCommunicator communicator,
      BackendDevice device,
      Reducer reducer,
      DataType wire,
      boolean finite,
      Map<String, String> alternatives) {}

  /**
   * Selects launcher, device and reducer. Collective.
   *
   * @param given all ranks of the job, or null to look for a launcher
   */
  public Choice choose(ProcessGroup given) {
    settings.meetsByMessages(); // throws now if the value is wrong
    ProcessGroup world = given != null ? given : launch();
    ProcessGroup group;
    try {
      group = world.split(0, world.rank(), settings.timeouts());
    } catch (RuntimeException | Error e) {
      LaunchedJob.closeIfUnused(world);
      throw e;
    }
    return choose(group, null);
  }

  /**
   * Selects device and reducer. Collective.
   *
   * @param group closed if this fails, unless this rank has a device already: those that are left
   *     of the group can then go on
   * @param opened that device, which stays open; or null
   */
  public Choice choose(ProcessGroup group, BackendDevice opened) {
    GroupCommunicator communicator = new GroupCommunicator(group);
    BackendDevice device = null;
    try {
      UnknownSettings.warn(settings, group.rank());
      requireSame(communicator);
      Map<String, String> rejected = new LinkedHashMap<>();
      device = device(group, communicator, rejected, opened);
      if (device instanceof HostDevice host) {
        requireDenormals(communicator);
        shareIfUseful(host, group);
      }
      return choose(group, communicator, device, rejected, group.rank() == 0);
    } catch (RuntimeException | Error e) {
      if (opened == null) {
        Resources.closeAllAfter(e, device, communicator);
      }
      throw e;
    }
  }

  /**
   * Selects the reducer of a part of the ranks. Collective over the part.
   *
   * @param part closed if this fails
   * @param device this rank's device, selected before
   */
  public Choice choosePart(ProcessGroup part, BackendDevice device) {
    GroupCommunicator communicator = new GroupCommunicator(part);
    try {
      return choose(part, communicator, device, Map.of(), false);
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, communicator);
      throw e;
    }
  }

  /**
   * As above, for the ranks that are left of a sync. They take another reducer where the one that
   * the user has named needs more of them.
   *
   * @throws org.gradientsync.RankLostException if another rank was lost; the group is then open, so
   *     that the others can go on
   */
  public Choice goOn(ProcessGroup left, BackendDevice device) {
    GroupCommunicator communicator = new GroupCommunicator(left);
    try {
      try {
        return choose(left, communicator, device, Map.of(), left.rank() == 0);
      } catch (UnavailableException e) {
        if (settings.get("reducer").isEmpty()) {
          throw e;
        }
        log.warn("rank {} takes another reducer: {}", left.rank(), e.getMessage());
        return new Selection(settings.with(Map.of("reducer", "")))
            .choose(left, communicator, device, Map.of(), left.rank() == 0);
      }
    } catch (RankLostException e) {
      throw e;
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, communicator);
      throw e;
    }
  }

  private Choice choose(
      ProcessGroup group,
      GroupCommunicator communicator,
      BackendDevice device,
      Map<String, String> rejectedDevices,
      boolean logs) {
    Reducer reducer = null;
    try {
      DataType wire = settings.wire().orElse(null);
      Map<String, String> rejected = new LinkedHashMap<>();
      Map<String, String> alternatives = new LinkedHashMap<>();
      reducer = reducer(communicator, group, device, rejected, alternatives);
      if (wire != null && !reducer.compresses()) {
        reducer = new CompressedReducer(reducer, group, device, wire);
      }
      report(group, device, rejectedDevices, reducer, wire, rejected, logs);
      group.deviceCalls().countFromHere();
      group.addState(device::state);
      group.addState(reducer::state);
      return new Choice(
          group, communicator, device, reducer, wire, settings.finite(), alternatives);
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, reducer);
      throw e;
    }
  }

  /**
   * Lets the processes of a node read each other's buffers, which a part of the ranks may do even
   * if ranks of several nodes cannot.
   */
  private void shareIfUseful(HostDevice device, ProcessGroup group) {
    if (!group.transport().name().equals(LocalTransport.NAME)
        && group.job().ranksOnNode() > 1
        && settings.get("reducer").isEmpty()
        && NodeIdentity.canShareMemory().usable()) {
      device.share();
    }
  }

  /**
   * Logs a short line for the job, with what makes it slower than expected: a device that is on the
   * class path and cannot be used, a GPU's reducers, memory that ranks of one node do not share, or
   * sockets between nodes. The rest is for debugging, on all ranks.
   */
  private static void report(
      ProcessGroup group,
      BackendDevice device,
      Map<String, String> rejectedDevices,
      Reducer reducer,
      DataType wire,
      Map<String, String> rejectedReducers,
      boolean logs) {
    String launcher = group.transport().name();
    boolean whole = group.size() == group.transport().size(); // not a part of the ranks
    long nodes =
        whole
            ? IntStream.range(0, group.size()).map(group.transport()::nodeOf).distinct().count()
            : 1;
    String chosen =
        String.format(
            Locale.ROOT,
            "%s%s, %s, reducer %s%s",
            ranks(group.size(), launcher),
            nodes == 1 ? "" : " on " + nodes + " nodes",
            device.name(),
            reducer.name(),
            wire == null ? "" : ", wire " + wire.name().toLowerCase(Locale.ROOT));
    if (logs) {
      Map<String, String> missed = new LinkedHashMap<>(rejectedDevices);
      if (!(device instanceof HostDevice)) {
        missed.putAll(rejectedReducers);
      } else if (nodes == 1
          && !launcher.equals(LocalTransport.NAME)
          && rejectedReducers.containsKey(SHARED)) {
        missed.put(SHARED, rejectedReducers.get(SHARED));
      }
      log.info(
          "{}{}{}",
          chosen,
          nodes > 1 && launcher.equals(SOCKETS) ? BETWEEN_NODES : "",
          passedOver(missed));
    }
    if (log.isDebugEnabled()) {
      Map<String, String> all = new LinkedHashMap<>(rejectedDevices);
      all.putAll(rejectedReducers);
      log.debug("rank {} of {}{}", group.rank(), chosen, passedOver(all));
    }
  }

  private static String ranks(int size, String launcher) {
    boolean threads = launcher.equals(LocalTransport.NAME);
    String kind = threads ? "threads" : launcher;
    return size == 1
        ? "1 rank" + (threads ? "" : " (" + kind + ")")
        : size + " ranks (" + kind + ")";
  }

  private static String passedOver(Map<String, String> rejected) {
    return rejected.isEmpty() ? "" : ", faster ones not available: " + rejected;
  }

  private ProcessGroup launch() {
    ProcessGroup threads = LocalWorld.current().orElse(null);
    if (threads != null) {
      return threads;
    }
    SharedFiles.deleteStaleFiles(); // before a launcher or a buffer takes memory
    if (settings.isAlone()) {
      return LocalWorld.single();
    }
    LauncherVariables variables = LauncherVariables.ofProcess();
    List<Launcher> launchers = Providers.of(Launcher.class, l -> l.priority(settings));
    List<Launcher> able = launchers.stream().filter(l -> l.launched(settings)).toList();
    if (!able.isEmpty()) {
      Launcher launcher = able.get(0);
      if (able.size() > 1 && WARNED.compareAndSet(false, true)) {
        log.warn(
            "variables or settings name several launchers: {}; taking {}",
            able.stream().map(Launcher::name).toList(),
            launcher.name());
      }
      ProcessGroup world = LaunchedJob.connect(launcher, settings);
      // Of an elastic job other ranks may take part; and a rank of settings that the builder has
      // been given is no process of the job that the variables are of.
      boolean isProcess = world.transport().process().isPresent();
      if (launcher.launched() && isProcess && !settings.elastic()) {
        variables.requireSize(world.size());
      }
      return world;
    }
    List<String> names = launchers.stream().map(Launcher::name).toList();
    LauncherVariables.Job job = variables.job().orElse(null);
    if (job != null && variables.areForOpenMpi() && !names.contains("mpi")) {
      throw new UnavailableException(
          "started by %s with %s ranks, but %s"
              .formatted(job.launcher(), job.size(), Providers.whyNoMpi()));
    }
    variables.requireSize(1);
    return LocalWorld.single();
  }

  /** See {@link AgreedSettings}. */
  private void requireSame(GroupCommunicator communicator) {
    List<String[]> answers = Answers.exchange(communicator, agreed());
    String own = answers.get(communicator.rank())[0];
    if (answers.stream().allMatch(answer -> answer[0].equals(own))) {
      return;
    }
    Map<String, List<Integer>> ranks = new LinkedHashMap<>();
    int rank = 0;
    for (String rest :
        AgreedSettings.differing(answers.stream().map(answer -> answer[0]).toList())) {
      ranks.computeIfAbsent(rest, value -> new ArrayList<>()).add(rank++);
    }
    StringJoiner causes = new StringJoiner("; ");
    ranks.forEach((settings, those) -> causes.add(settings + " on ranks " + those));
    throw new UnavailableException(
        ("the ranks ask for different ones: %s; rank=%s;"
                + " give them alike on all ranks, with the prefix gradientsync")
            .formatted(causes, communicator.rank()));
  }

  /** Flushing denormals on one rank would change the bits of the shard that this rank reduces. */
  private static void requireDenormals(GroupCommunicator communicator) {
    if (communicator.size() == 1) {
      return; // nothing is added
    }
    List<String[]> answers =
        Answers.exchange(communicator, Denormals.areFlushed() ? "flushed" : "kept");
    List<Integer> ranks =
        IntStream.range(0, answers.size())
            .filter(rank -> answers.get(rank)[0].equals("flushed"))
            .boxed()
            .toList();
    if (!ranks.isEmpty()) {
      throw new UnavailableException(
          "the processor takes denormal numbers for zero on ranks %s, rank=%s; %s"
              .formatted(ranks, communicator.rank(), Denormals.ADVICE));
    }
  }

  /** By the rank's place in the job: ranks of other groups want devices of the same node, too. */
  private BackendDevice device(
      ProcessGroup group,
      GroupCommunicator communicator,
      Map<String, String> rejected,
      BackendDevice opened) { // or null
    RankMap ranks = group.ranks();
    List<Integer> node = ranks.onNode(ranks.nodeOf(ranks.rank()));
    int place = DevicePlaces.agree(communicator, node, group.job().place(), opened != null);
    group.job().setPlace(place);
    DeviceRequest request =
        new DeviceRequest(group.worldRank(), place, group.job().ranksOnNode(), settings);
    DeviceProvider provider =
        new JointChoice(communicator, "device", settings.device().orElse(null))
            .choose(
                Providers.of(DeviceProvider.class, DeviceProvider::priority),
                DeviceProvider::kind,
                p ->
                    opened == null || opened.kind().equals(p.kind())
                        ? p.availability(request)
                        : Availability.no("ranks that train already use another"),
                rejected,
                new LinkedHashMap<>());
    return opened != null ? opened : provider.open(request);
  }

  private Reducer reducer(
      GroupCommunicator communicator,
      ProcessGroup group,
      BackendDevice device,
      Map<String, String> rejected,
      Map<String, String> alternatives) {
    SyncContext context =
        new SyncContext(group, new GroupCommunicator(group), device, settings, new OwnParts());
    List<ReducerProvider> providers =
        Providers.of(ReducerProvider.class, ReducerProvider::priority);
    String asked = settings.get("reducer").map(a -> a.toLowerCase(Locale.ROOT)).orElse(null);
    Map<String, String> failed = new LinkedHashMap<>();
    while (true) {
      ReducerProvider provider =
          new JointChoice(communicator, "reducer", asked)
              .choose(
                  providers,
                  ReducerProvider::name,
                  p ->
                      failed.containsKey(p.name())
                          ? Availability.no(failed.get(p.name()))
                          : p.availability(context),
                  rejected,
                  alternatives);
      try {
        return provider.create(context);
      } catch (UnavailableException e) {
        // every rank throws: create is collective, and the ranks agree on its outcome
        failed.put(provider.name(), e.getMessage());
      }
    }
  }
}
