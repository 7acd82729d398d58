package org.gradientsync.djl;

import ai.djl.ndarray.NDManager;
import ai.djl.training.dataset.Batch;
import ai.djl.training.dataset.Dataset;
import ai.djl.translate.Batchifier;
import ai.djl.translate.TranslateException;
import ai.djl.util.Progress;
import java.io.IOException;
import java.util.Iterator;

/** Batches that do not tell how many follow. */
record HiddenProgress(Dataset dataset) implements Dataset {
  @Override
  public Iterable<Batch> getData(NDManager manager) throws IOException, TranslateException {
    Iterator<Batch> batches = dataset.getData(manager).iterator();
    return () ->
        new Iterator<>() {
          @Override
          public boolean hasNext() {
            return batches.hasNext();
          }

          @Override
          public Batch next() {
            Batch b = batches.next();
            return new Batch(
                b.getManager(),
                b.getData(),
                b.getLabels(),
                b.getSize(),
                Batchifier.STACK,
                Batchifier.STACK,
                0,
                0);
          }
        };
  }

  @Override
  public void prepare(Progress progress) throws IOException, TranslateException {
    dataset.prepare(progress);
  }
}
