/** Gradients on NVIDIA GPUs: devices, buffers, streams, graphs, kernels, cuBLAS, and reducers. */
module org.gradientsync.cuda {
  requires com.sun.jna;
  requires jcublas;
  requires jcuda;
  requires org.gradientsync.core;
  requires org.slf4j;
  requires org.tukaani.xz;

  exports org.gradientsync.cuda;
  exports org.gradientsync.cuda.compute;

  opens org.gradientsync.cuda.internal.nccl to
      com.sun.jna; // which reads a structure's fields

  provides org.gradientsync.spi.DeviceProvider with
      org.gradientsync.cuda.CudaDeviceProvider;
  provides org.gradientsync.spi.ReducerProvider with
      org.gradientsync.cuda.internal.staged.HostStagedReducerProvider,
      org.gradientsync.cuda.internal.peer.PeerReducerProvider,
      org.gradientsync.cuda.internal.nccl.NcclReducerProvider;
}
