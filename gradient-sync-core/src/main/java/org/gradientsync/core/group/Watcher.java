package org.gradientsync.core.group;

import org.gradientsync.core.diagnosis.LongWait;

/** Looks repeatedly at waits that have become long. */
interface Watcher {
  /** Throws if the wait must end. */
  void look(LongWait wait);
}
