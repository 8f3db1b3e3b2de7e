// Loaded into Node-RED. Left behind by a parent that was killed, it would go on unseen, with its port and its data.
process.stdin.on('close', () => {
  if (!process.emit('SIGTERM')) process.exit();
});
process.stdin.resume().unref();
