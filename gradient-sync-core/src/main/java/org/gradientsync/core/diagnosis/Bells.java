package org.gradientsync.core.diagnosis;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/** The bells of a job: one for each folder that its groups write reports to. */
public final class Bells {
  private final int rankOnNode;
  private final int ranksOnNode;
  private final Map<Path, Bell> bells = new HashMap<>();
  private long job;

  /**
   * @param rankOnNode from 0 to ranksOnNode - 1
   * @param ranksOnNode the number of ranks of the job on this rank's node
   */
  public Bells(int rankOnNode, int ranksOnNode) {
    this.rankOnNode = rankOnNode;
    this.ranksOnNode = ranksOnNode;
  }

  /**
   * Sets the job's number, unless it has one.
   *
   * @param number random, and the same on all ranks
   */
  public synchronized void nameJob(long number) {
    job = job == 0 ? number : job;
  }

  /** The bell of the processes whose reports go to a folder. */
  public synchronized Bell of(Path reports) {
    return bells.computeIfAbsent(reports, folder -> new Bell(folder, job, rankOnNode, ranksOnNode));
  }
}
