package org.gradientsync.core.collectives.nodes;

import java.util.Arrays;

/** Events in the order of their virtual times: a binary heap of numbers. */
final class EventQueue {
  private long[] times = new long[1024];
  private long[] events = new long[1024];
  private long[] values = new long[1024];
  private int size;
  private long time;
  private long event;
  private long value;

  /**
   * @param event what happens; of two at the same time, the smaller one is first
   * @param value comes with it
   */
  void add(long newTime, long newEvent, long newValue) {
    if (size == times.length) {
      times = Arrays.copyOf(times, 2 * size);
      events = Arrays.copyOf(events, 2 * size);
      values = Arrays.copyOf(values, 2 * size);
    }
    int at = size++;
    while (at > 0 && isBefore(newTime, newEvent, (at - 1) / 2)) {
      move((at - 1) / 2, at);
      at = (at - 1) / 2;
    }
    set(at, newTime, newEvent, newValue);
  }

  /** Takes the next event. Returns false if there is none. */
  boolean next() {
    if (size == 0) {
      return false;
    }
    time = times[0];
    event = events[0];
    value = values[0];
    size--;
    int at = 0;
    for (int child = 1; child < size; child = 2 * at + 1) {
      if (child + 1 < size && isBefore(times[child + 1], events[child + 1], child)) {
        child++;
      }
      if (isBefore(times[size], events[size], child)) {
        break;
      }
      move(child, at);
      at = child;
    }
    set(at, times[size], events[size], values[size]);
    return true;
  }

  private boolean isBefore(long otherTime, long otherEvent, int index) {
    return otherTime < times[index] || otherTime == times[index] && otherEvent < events[index];
  }

  private void move(int from, int to) {
    set(to, times[from], events[from], values[from]);
  }

  private void set(int at, long newTime, long newEvent, long newValue) {
    times[at] = newTime;
    events[at] = newEvent;
    values[at] = newValue;
  }

  /** When the event that was taken happens. */
  long time() {
    return time;
  }

  long event() {
    return event;
  }

  long value() {
    return value;
  }
}
