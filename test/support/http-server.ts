// Stand-ins of the outside world in tests are made of what the demo is made of.
export * from '../../script/demo.d/loopback-server.js';
