// Loaded into Node-RED: if its parent was killed, it would otherwise keep running unseen, with its port and its data.
process.stdin.on('close', () => {
  if (!process.emit('SIGTERM')) process.exit();
});
process.stdin.resume().unref();
