// One problem per thread.
Solver s;
s.g = (const Given*)(given.data + (size_t)task * (sizeof(Given) / sizeof(double)));
s.f = (Found*)(found.data + (size_t)task * (sizeof(Found) / sizeof(double)));
s.w = (Work*)(work.data + (size_t)task * (sizeof(Work) / sizeof(double)));
s.run();
