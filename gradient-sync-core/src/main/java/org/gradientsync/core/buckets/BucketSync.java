package org.gradientsync.core.buckets;

import java.util.List;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.core.collectives.messages.GroupCommunicator;
import org.gradientsync.core.observation.Observer;
import org.gradientsync.core.rendezvous.CallRecord.Origin;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.Reducer;

/** The sync as its buckets see it. */
public interface BucketSync {

  int rank();

  int size();

  /** The device that holds the buckets' memory. */
  BackendDevice backend();

  Observer observer();

  /** The communicator for the library's own calls, which no interceptor sees. */
  GroupCommunicator ownCommunicator();

  /** What averages the buckets. */
  Reducer ownReducer();

  /** Returns the number of the next bucket set, from 1; the same on all ranks. */
  int nextBuckets();

  /** The thread for averages that overlap with the backward pass if the reducer blocks. */
  CommunicationThread communicationThread();

  /** Waits until the communication thread is idle, so that all ranks keep one order of calls. */
  void awaitTurn();

  /** Whether the program has asked this rank to stop. */
  boolean isStopRequested();

  /** All ranks know that they stop after a step. */
  void allStop();

  /** Prepares a call, without an interceptor. Collective. */
  void prepare(CollectiveCall call);

  /** Makes a call at once: the caller keeps the order of calls. */
  void runInTurn(CollectiveCall call, Origin origin);

  /** Sets the origin of this sync's calls that follow. For one thread. */
  void setOrigin(Origin origin);

  /** Makes a sync of a part of the ranks. Collective. */
  GradientSync split(int color, int key);

  /** Runs a hook of the program, which must not call this sync. */
  void runHook(Runnable hook);

  /** Throws if this thread runs a hook. */
  void requireNoHook();

  /** Gathers all ranks' blocks on one rank; the others give null for them. Collective. */
  void gather(DeviceBuffer in, DeviceBuffer out, int root);

  /** Gives each rank its block of one rank's buffer; the others give null for it. Collective. */
  void scatter(DeviceBuffer in, DeviceBuffer out, int root);

  /** Copies one rank's elements to all ranks. Interceptors see one call. Collective. */
  void broadcast(List<? extends DeviceBuffer> buffers, int root);
}
