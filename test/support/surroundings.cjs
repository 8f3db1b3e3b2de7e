'use strict';
const { env } = require('node:process');

/** The same everywhere: if settings name no language and no time zone, Node-RED and its nodes use the system's. */
env.LC_ALL = 'C.UTF-8';
env.TZ = 'UTC';
