// The natives of DJL 0.35.1 that look into an array themselves, for a PyTorch that is not the 2.7.1 they were built for, and calls
// that it has no more. Loaded by Java code that goes on with djl-training:
//   Engine.getEngine("PyTorch"); System.load("libfits.so"); DjlTraining.main(args);
// g++ -O1 -std=c++20 -shared -fPIC -I JDK/include -I TORCH/include -I CUDA/include 2026-11-22-djl-fits.cc -L TORCH/lib -ltorch
//   -ltorch_cpu -lc10 -ldl libcudart.so.13 -o libfits.so
// PYTORCH_LIBRARY_PATH=TORCH/lib PYTORCH_VERSION=2.7.1 PYTORCH_FLAVOR=cu128
#include <ATen/ATen.h>
#include <c10/cuda/CUDAFunctions.h>
#include <dlfcn.h>
#include <jni.h>
// Calls of PyTorch 2.7 that have gone since, for the natives to find.
extern "C" c10::SymBool not_equal(const c10::SymInt* a, const c10::SymInt* b) asm("_ZNK3c106SymInt6sym_neERKS0_");
extern "C" c10::SymBool not_equal(const c10::SymInt* a, const c10::SymInt* b) { return c10::SymBool(a->expect_int() != b->expect_int()); }
extern "C" cudaError_t set_device(signed char device) asm("_ZN3c104cuda9SetDeviceEa");
extern "C" cudaError_t set_device(signed char device) { return cudaSetDevice(device); }

static jobject direct(JNIEnv* env, jobject, jlong handle) {
  auto* t = reinterpret_cast<at::Tensor*>(handle);
  return env->NewDirectByteBuffer(t->data_ptr(), t->nbytes());
}
static jlong from_blob(JNIEnv* env, jobject, jobject buffer, jlongArray shape, jint type, jint, jintArray device, jboolean) {
  static const at::ScalarType types[] = {at::kFloat, at::kDouble, at::kHalf, at::kByte, at::kInt, at::kChar, at::kLong, at::kBool};
  std::vector<int64_t> sizes(env->GetArrayLength(shape));
  env->GetLongArrayRegion(shape, 0, sizes.size(), reinterpret_cast<jlong*>(sizes.data()));
  jint where[2];
  env->GetIntArrayRegion(device, 0, 2, where);
  at::Tensor t = at::from_blob(env->GetDirectBufferAddress(buffer), sizes, at::TensorOptions().dtype(types[type])).clone();
  if (where[0] == 1) t = t.to(at::Device(at::kCUDA, where[1]));
  return reinterpret_cast<jlong>(new at::Tensor(t));
}
extern "C" JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM* vm, void*) {
  Dl_info self;
  dladdr(reinterpret_cast<void*>(&direct), &self);
  dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
  JNIEnv* env;
  vm->GetEnv(reinterpret_cast<void**>(&env), JNI_VERSION_1_8);
  jclass c = env->FindClass("ai/djl/pytorch/jni/PyTorchLibrary");
  JNINativeMethod m[] = {
      {(char*)"torchDirectByteBuffer", (char*)"(J)Ljava/nio/ByteBuffer;", (void*)direct},
      {(char*)"torchFromBlob", (char*)"(Ljava/nio/ByteBuffer;[JII[IZ)J", (void*)from_blob}};
  if (c == nullptr || env->RegisterNatives(c, m, 2) != 0) return -1;
  return JNI_VERSION_1_8;
}
