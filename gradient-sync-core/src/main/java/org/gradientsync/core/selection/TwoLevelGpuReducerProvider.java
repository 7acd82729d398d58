package org.gradientsync.core.selection;

import java.util.Map;
import java.util.Set;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.backend.Agreement;
import org.gradientsync.core.collectives.nodes.TwoLevelGpuReducer;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.ranks.NodeLayout;
import org.gradientsync.spi.Availability;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.ReducerProvider;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.SyncContext;

/**
 * Provides {@code two-level-gpu}, for GPUs of several nodes that NCCL or a CUDA-aware MPI connects.
 * NCCL only carries messages, so the order of additions does not depend on it.
 */
public final class TwoLevelGpuReducerProvider implements ReducerProvider {
  static final String NAME = "two-level-gpu";

  private static final String STAGED = "host-staged";

  private static final Set<String> BETWEEN_NODES = Set.of("nccl", "cuda-aware");

  /** What the user has set concerns the calls for all ranks. */
  private static final Map<String, String> FOR_PARTS =
      Map.of("order", "any", "reducer", "", "wire", "", "finite", "");

  /** For the service loader. */
  public TwoLevelGpuReducerProvider() {}

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public int priority() {
    return 355;
  }

  @Override
  public Availability availability(SyncContext context) {
    if (!context.device().kind().equals("cuda")) {
      return Availability.no(
          "the gradients are not in GPU memory: device=" + context.device().kind());
    }
    NodeLayout layout = new NodeLayout(ProcessGroup.of(context.group()).ranks());
    if (layout.nodes() == 1) {
      return Availability.no("the ranks are on one node");
    }
    if (layout.most() == 1) {
      return Availability.no("each rank is on a node of its own");
    }
    if (!layout.isContiguous() || layout.fewest() < layout.most()) {
      return Availability.no(
          "the nodes do not have the same number of ranks each, one node after the other; start"
              + " them so, for example with mpirun --map-by ppr:8:node");
    }
    return Availability.yes();
  }

  @Override
  public Reducer create(SyncContext context) {
    ProcessGroup group = ProcessGroup.of(context.group());
    NodeLayout layout = new NodeLayout(group.ranks());
    Resources parts = new Resources();
    try {
      Selection.Choice node = choose(context, layout.node(), parts);
      Selection.Choice crossNode = choose(context, layout.localRank(), parts);
      String between = crossNode.reducer().name();
      Agreement.requireAll(
          context.communicator(),
          BETWEEN_NODES.contains(between)
              ? ""
              : "neither NCCL nor a CUDA-aware MPI connects the nodes: nccl: "
                  + crossNode.alternatives().get("nccl")
                  + "; cuda-aware: "
                  + crossNode.alternatives().get("cuda-aware")
                  + "; install NCCL, or choose reducer=host-staged");
      Reducer flat = parts.add(provider(STAGED).create(context));
      return new TwoLevelGpuReducer(
          NAME,
          group,
          node.group(),
          node.reducer(),
          crossNode.group(),
          crossNode.reducer(),
          flat,
          context.device(),
          TwoLevelGpuReducer.SIZES,
          parts);
    } catch (RuntimeException | Error e) {
      parts.closeAfter(e);
      throw e;
    }
  }

  private static ReducerProvider provider(String name) {
    return Providers.of(ReducerProvider.class).stream()
        .filter(provider -> provider.name().equals(name))
        .findFirst()
        .orElseThrow(
            () -> new UnavailableException("no reducer " + name + " is on the class path"));
  }

  /**
   * The fastest reducer of some ranks, which only moves elements, so that any order of additions
   * will do. All ranks or none get theirs: none may wait in vain.
   */
  private static Selection.Choice choose(SyncContext context, int color, Resources parts) {
    ProcessGroup group = ProcessGroup.of(context.group());
    ProcessGroup ranks = group.split(color, group.rank(), group.timeouts());
    Selection.Choice choice = null;
    String reason = "";
    try {
      choice =
          new Selection(context.settings().with(FOR_PARTS)).choosePart(ranks, context.device());
      parts.add(choice.communicator());
      parts.add(choice.reducer());
    } catch (UnavailableException e) {
      reason = e.getMessage();
    }
    Agreement.requireAll(context.communicator(), reason);
    return choice;
  }
}
