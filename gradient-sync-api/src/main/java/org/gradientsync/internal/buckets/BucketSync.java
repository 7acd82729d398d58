package org.gradientsync.internal.buckets;

import java.util.List;
import org.gradientsync.Communicator;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.internal.observation.Observer;
import org.gradientsync.spi.BackendDevice;

/** What buckets need of the sync whose ranks average them. */
public interface BucketSync {
  /** This rank's number. */
  int rank();

  /** The number of ranks. */
  int size();

  /** The device that the buckets' memory is on. */
  BackendDevice backend();

  /** What records the time that averages take. */
  Observer observer();

  /** The ranks, for the library's own calls. */
  Communicator ownCommunicator();

  /** Numbers the sync's buckets, from 1; the same on all ranks, which build them together. */
  int nextBuckets();

  /** Whether an average returns only when the other ranks have come. */
  boolean blocksHost();

  /** What averages during the backward pass where the reducer blocks the host. */
  CommunicationThread communicationThread();

  /** Waits until the communication thread has nothing to do, so that all ranks keep one order. */
  void awaitTurn();

  /** Throws if the caller is a listener of the sync. */
  void requireNoListener();

  /** Prepares a buffer for averages. Collective. */
  void prepare(DeviceBuffer buffer);

  /** Averages in the order that the caller keeps; waits for no other call. */
  void averageInOrder(DeviceBuffer buffer);

  /** Copies one rank's elements to all ranks, as one call of the program's. Collective. */
  void broadcast(List<? extends DeviceBuffer> buffers, int root);
}
