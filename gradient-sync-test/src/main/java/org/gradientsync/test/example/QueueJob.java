package org.gradientsync.test.example;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** What the ranks of a job share, as they are threads of one JVM. */
final class QueueJob {
  final List<QueueTransport.Entry> queue = new ArrayList<>(); // guarded by itself
  final Map<Long, QueueReducer.Board> boards = new ConcurrentHashMap<>(); // of each reducer
}
