package org.gradientsync.djl;

import ai.djl.training.Trainer;
import ai.djl.training.listener.SaveModelTrainingListener;
import ai.djl.training.listener.TrainingListener;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.gradientsync.GradientSync;

/**
 * Lets only rank 0 save, and only after the end of an epoch on all ranks. DJL's listener saves
 * after epochs whose number its checkpoint divides, and at the end unless the checkpoint divides
 * the last. So on other ranks the checkpoint is one that divides no epoch until training ends, and
 * then one that divides all. A listener of rank 0 that is called too early has one that divides no
 * epoch, too, and is called again later with its own.
 */
final class Saving {
  private static final int NEVER = Integer.MAX_VALUE;
  private static final int SAVED = 1;

  private final List<SaveModelTrainingListener> before = new ArrayList<>();
  private final List<SaveModelTrainingListener> after = new ArrayList<>();
  private final Map<SaveModelTrainingListener, Integer> early = new LinkedHashMap<>(); // of rank 0
  private final Map<SaveModelTrainingListener, Integer> own = new LinkedHashMap<>(); // of others
  private boolean saves;

  Saving(GradientSync sync, Trainer trainer, DataParallel owner) {
    saves = sync.rank() == 0;
    boolean[] passed = {false};
    trainer.notifyListeners(listener -> find(listener, owner, passed));
    if (!saves) {
      before.forEach(listener -> own.put(listener, listener.getCheckpoint()));
      after.forEach(listener -> own.put(listener, listener.getCheckpoint()));
      set(before, NEVER);
      set(after, NEVER);
    }
  }

  /** During an epoch: this rank saves from now on if it has become rank 0. */
  void follow(GradientSync sync) {
    if (saves || sync.rank() != 0) {
      return;
    }
    saves = true;
    set(before, NEVER);
    before.forEach(listener -> early.put(listener, own.get(listener)));
    after.forEach(listener -> listener.setCheckpoint(own.get(listener)));
  }

  private void find(TrainingListener listener, DataParallel owner, boolean[] passed) {
    passed[0] |= listener == owner;
    if (listener instanceof SaveModelTrainingListener saving) {
      (passed[0] ? after : before).add(saving);
    }
  }

  void onBatch() {
    if (saves && early.isEmpty()) {
      before.forEach(listener -> early.put(listener, listener.getCheckpoint()));
    }
    set(before, NEVER);
  }

  void onEpoch(Trainer trainer) {
    if (!saves) {
      set(before, SAVED); // they have been called for this epoch, and may next be at the end
      return;
    }
    early.forEach(
        (listener, checkpoint) -> {
          listener.setCheckpoint(checkpoint);
          listener.onEpoch(trainer);
        });
    early.clear();
  }

  void onEnd() {
    if (!saves) {
      set(after, SAVED);
    }
  }

  private static void set(List<SaveModelTrainingListener> listeners, int checkpoint) {
    listeners.forEach(listener -> listener.setCheckpoint(checkpoint));
  }
}
