package org.gradientsync.spi;

/**
 * Provides the reducer that a launcher's ranks use where there is no faster one: it sends host
 * memory by the launcher's messages and adds on the CPU. It has the launcher's name. A launcher
 * with a faster one for host memory overrides {@link #create}.
 */
public abstract class MessageReducerProvider implements ReducerProvider {
  private final String launcher;
  private final int priority;
  private final String otherwise;

  /**
   * Creates a provider.
   *
   * @param launcher the name of the launcher and of the reducer
   * @param priority see {@link ReducerProvider#priority}
   * @param otherwise why the reducer cannot be used by another launcher's ranks
   */
  protected MessageReducerProvider(String launcher, int priority, String otherwise) {
    this.launcher = launcher;
    this.priority = priority;
    this.otherwise = otherwise;
  }

  @Override
  public final String name() {
    return launcher;
  }

  @Override
  public final int priority() {
    return priority;
  }

  @Override
  public final Availability availability(SyncContext context) {
    String found = context.group().transport().name();
    if (!found.equals(launcher)) {
      return Availability.no(otherwise + ": launcher=" + found);
    }
    String kind = context.device().kind();
    return kind.equals("host")
        ? Availability.yes()
        : Availability.no("the gradients are not in host memory: device=" + kind);
  }

  @Override
  public Reducer create(SyncContext context) {
    return context.parts().overMessages(context, name(), ReducerParts.HOST_CHUNK_BYTES);
  }
}
