// Raw writes among 4 GPUs in one process: in phases, each to one peer.
#include <cstdio>
#include <vector>
#include <algorithm>
#include <cuda_runtime.h>
#define C(x) do{cudaError_t e_=(x); if(e_){printf("%s: %s line %d\n",#x,cudaGetErrorString(e_),__LINE__);exit(1);}}while(0)
struct A{ uint4* to[4]; const uint4* from; unsigned* bar; int phases; int per; int n; int sync; int mode; };
// per: batches of U*T vectors per block and phase
template<int U,int T> __global__ void __launch_bounds__(T) go(A a){
  size_t off=(size_t)blockIdx.x*U*T+threadIdx.x, stride=(size_t)gridDim.x*U*T; size_t i=off;
  const size_t wrap = (size_t)(64<<20)/16/stride*stride;
  unsigned target=0;
  for(int p=0;p<a.phases;p++){
    int k = a.mode==0 ? p%a.n : a.mode==1 ? 0 : (p+blockIdx.x)%a.n;
    uint4* to=a.to[k];
    for(int b=0;b<a.per;b++){
      uint4 v[U];
      #pragma unroll
      for(int u=0;u<U;u++) v[u]=a.from[i+u*T];
      #pragma unroll
      for(int u=0;u<U;u++) asm volatile("st.global.v4.u32 [%0],{%1,%2,%3,%4};"::"l"(to+i+u*T),"r"(v[u].x),"r"(v[u].y),"r"(v[u].z),"r"(v[u].w):"memory");
      i+=stride; if(i>=wrap+off) i=off;
    }
    if(a.sync){ __syncthreads(); if(threadIdx.x==0){ if(a.sync==2) __threadfence_system(); target+=gridDim.x; atomicAdd(a.bar,1); while(*(volatile unsigned*)a.bar<target); } __syncthreads(); }
  }
}
int main(){
  int n; C(cudaGetDeviceCount(&n)); if(n>4)n=4;
  std::vector<char*> src(n),dst(n); std::vector<unsigned*> bar(n); std::vector<cudaStream_t> s(n); std::vector<cudaEvent_t> t0(n),t1(n);
  for(int d=0;d<n;d++){ C(cudaSetDevice(d)); for(int e=0;e<n;e++) if(e!=d) C(cudaDeviceEnablePeerAccess(e,0));
    C(cudaMalloc(&src[d],80<<20)); C(cudaMalloc(&dst[d],(size_t)n*(80<<20))); C(cudaMalloc(&bar[d],256)); C(cudaMemset(src[d],1,80<<20)); C(cudaStreamCreate(&s[d])); C(cudaEventCreate(&t0[d])); C(cudaEventCreate(&t1[d])); }
  auto run=[&](const char*name,void(*f)(A),int blocks,int T,int U,int per,int sync,int mode,int others){
    size_t batch=(size_t)blocks*T*U*16; long total=(long)768<<20; int phases=std::max<long>(others,total/(batch*per)); phases=phases/others*others;
    std::vector<double> all;
    for(int rep=0;rep<4;rep++){
      for(int d=0;d<n;d++){ C(cudaSetDevice(d)); C(cudaMemsetAsync(bar[d],0,256,s[d])); C(cudaStreamSynchronize(s[d])); }
      for(int d=0;d<n;d++){ C(cudaSetDevice(d)); A a; for(int k=0;k<others;k++){int peer=(d+1+k)%n; int place=d; a.to[k]=(uint4*)(dst[peer]+(size_t)place*(80<<20));} a.from=(uint4*)src[d]; a.bar=bar[d]; a.phases=phases;a.per=per;a.n=others;a.sync=sync;a.mode=mode;
        C(cudaEventRecord(t0[d],s[d])); f<<<blocks,T,0,s[d]>>>(a); C(cudaEventRecord(t1[d],s[d])); }
      double worst=0; for(int d=0;d<n;d++){ C(cudaSetDevice(d)); C(cudaStreamSynchronize(s[d])); float ms; C(cudaEventElapsedTime(&ms,t0[d],t1[d])); worst=std::max<double>(worst,ms);} if(rep) all.push_back(worst);
    }
    std::sort(all.begin(),all.end()); printf("%-14s b%d t%d U%d per%d (%.1f MB a phase) sync%d peers%d: %.1f GB/s\n",name,blocks,T,U,per,batch*per/1e6,sync,others,(double)phases*per*batch/all[1]/1e6); fflush(stdout);
  };
  for(int others: {1,n-1}) for(int sync: {0,1,2}) for(int per: {1,2,4,8,16,32}){
    run("phases",go<4,512>,128,512,4,per,sync,0,others); if(others==1&&per>=2) break; }
  for(int per: {1,4,16}) run("skewed",go<4,512>,128,512,4,per,0,2,n-1);
  for(int per: {1,2,4,8}) {run("phases",go<8,512>,128,512,8,per,0,0,n-1); run("phases",go<2,512>,256,512,2,4*per,0,0,n-1);run("phases",go<4,512>,264,512,4,per,0,0,n-1);run("phases",go<4,1024>,128,1024,4,per,1,0,n-1);}
}
