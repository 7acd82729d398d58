package org.gradientsync.core.collectives.nodes;

import java.util.ArrayList;
import java.util.List;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.core.host.HostBuffer;

/** Runs of elements to copy, prepared once and copied many times. */
final class Copies {
  private final List<HostBuffer> sources = new ArrayList<>();
  private final List<HostBuffer> targets = new ArrayList<>();

  void add(DeviceBuffer source, DeviceBuffer target) {
    sources.add((HostBuffer) source);
    targets.add((HostBuffer) target);
  }

  void run() {
    for (int i = 0; i < sources.size(); i++) {
      targets.get(i).copyRange(0, sources.get(i), sources.get(i).count());
    }
  }
}
