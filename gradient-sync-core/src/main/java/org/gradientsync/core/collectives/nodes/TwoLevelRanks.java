package org.gradientsync.core.collectives.nodes;

import org.gradientsync.core.collectives.shared.NodeRanks;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.ranks.NodeLayout;
import org.gradientsync.core.rendezvous.SharedMemoryRendezvous;

/**
 * The ranks of a {@link TwoLevelReducer}, as all of its plans see them.
 *
 * @param device does the arithmetic
 * @param layout how they lie on nodes
 * @param nodeRanks those of this node
 * @param board where its ranks publish what they have
 */
record TwoLevelRanks(
    ProcessGroup group,
    HostDevice device,
    NodeLayout layout,
    NodeRanks nodeRanks,
    SharedMemoryRendezvous board) {}
