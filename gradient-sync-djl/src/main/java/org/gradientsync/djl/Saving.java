package org.gradientsync.djl;

import ai.djl.training.Trainer;
import ai.djl.training.listener.SaveModelTrainingListener;
import ai.djl.training.listener.TrainingListener;
import java.util.ArrayList;
import java.util.List;
import org.gradientsync.GradientSync;

/**
 * Lets only rank 0 save. DJL's listener saves after epochs whose number its checkpoint divides, and
 * at the end unless the checkpoint divides the last. So on other ranks the checkpoint is one that
 * divides no epoch until training ends, and then one that divides all.
 */
final class Saving {
  private static final int NEVER = Integer.MAX_VALUE;
  private static final int SAVED = 1;

  private final List<SaveModelTrainingListener> before = new ArrayList<>();
  private final List<SaveModelTrainingListener> after = new ArrayList<>();

  Saving(GradientSync sync, Trainer trainer, DataParallel owner) {
    if (sync.rank() != 0) {
      boolean[] passed = {false};
      trainer.notifyListeners(listener -> find(listener, owner, passed));
      set(before, NEVER);
      set(after, NEVER);
    }
  }

  private void find(TrainingListener listener, DataParallel owner, boolean[] passed) {
    passed[0] |= listener == owner;
    if (listener instanceof SaveModelTrainingListener saving) {
      (passed[0] ? after : before).add(saving);
    }
  }

  void onBatch() {
    set(before, NEVER);
  }

  void onEpoch() {
    set(before, SAVED); // they have been called for this epoch, and may next be at the end
  }

  void onEnd() {
    set(after, SAVED);
  }

  private static void set(List<SaveModelTrainingListener> listeners, int checkpoint) {
    listeners.forEach(listener -> listener.setCheckpoint(checkpoint));
  }
}
