// app: starts the script of the page.
import {showCompare} from '/compare.js';
import {showGroup} from '/group.js';
import {showList} from '/list.js';
import {showQueue} from '/queue.js';
import {showRun} from '/run.js';
import {showWhy} from '/why.js';

const pages = {compare: showCompare, group: showGroup, list: () => { showList(); showQueue(); }, run: () => { showRun(); showWhy(); }};
pages[document.body.dataset.page]();
