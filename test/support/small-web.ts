// The small web of the demo serves tests as well.
export * from '../../script/demo.d/small-web.js';
